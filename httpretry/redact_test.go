package httpretry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// An inner http.Client says each URL in its errors; what forbear prints holds
// none of its secrets, and errors.As still finds what it found.
func TestSecretsReachNoError(t *testing.T) {
	const secret = "s3cr3t-Value"
	for _, tc := range []struct {
		name string
		next http.RoundTripper
	}{
		{"an inner client", innerClient{}},
		{"a transport that prints the URL", &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			return nil, errors.New("cannot send " + req.URL.String())
		}}}},
		{"a transport that prints a parameter", &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			return nil, errors.New("bad token " + req.URL.Query().Get("token"))
		}}}},
		{"a transport that prints the credentials", &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			return nil, errors.New("bad credentials " + req.Header.Get("Authorization")[len("Bearer "):])
		}}}},
		{"an answer that cannot be read", rawAnswer(t, "HTTP/9.9 "+secret+"\r\n\r\n")},
		{"a status that cannot be read", rawAnswer(t, "HTTP/1.1 "+secret+"\r\n\r\n")},
		{"a header that cannot be read", rawAnswer(t, "HTTP/1.1 200 OK\r\n"+secret+"\r\n\r\n")},
		{"a length that cannot be read", rawAnswer(t, "HTTP/1.1 200 OK\r\nContent-Length: "+secret+"\r\n\r\n")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			logs := &capture{}
			r, err := forbear.New("payments", fast, forbear.WithObserver(forbear.LogObserver(logs.logger(), nil)))
			if err != nil {
				t.Fatal(err)
			}
			req := newRequest(t, http.MethodPost, "http://user:"+secret+"@127.0.0.1:1/?token="+secret+"&b=%20"+secret, secret, key)
			req.Header.Set("Authorization", "Bearer "+secret)
			_, err = httpretry.NewTransport(tc.next, r).RoundTrip(req)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error says %q", err)
			}
			if strings.Contains(logs.String(), secret) {
				t.Errorf("the log says %q", logs)
			}
			if logs.String() == "" {
				t.Error("nothing was logged")
			}
		})
	}
}

// capture is a log in memory.
type capture struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

func (c *capture) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// innerClient is a RoundTripper that uses an http.Client, as some do.
type innerClient struct{}

func (innerClient) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.RequestURI = ""
	return (&http.Client{Transport: &http.Transport{}}).Do(req)
}

// rawAnswer returns a transport to a server that answers with the given bytes,
// whatever address is asked for.
func rawAnswer(t *testing.T, answer string) http.RoundTripper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 64)
			_, _ = c.Read(buf)
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("tcp", l.Addr().String())
		},
	}
}

// Short words are not looked for by themselves, or little would be left.
func TestShortParametersLeaveTheTextReadable(t *testing.T) {
	req := newRequest(t, http.MethodGet, "http://payments.test/?a=1", "", "")
	_, err := over(t, &script{steps: []step{fail(errors.New("dial http://payments.test/?a=1: a broken 127.0.0.1"))}}, fast).RoundTrip(req)
	if want := "dial http://payments.test/[redacted]: a broken 127.0.0.1"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, want %q at its end", err, want)
	}
}

// An address without a scheme is a mistake of the day, and net/http's quotation shows it. A
// method is the program's own, too. What the server has sent stays out, also beside them.
func TestQuotationsOfTheRequestStay(t *testing.T) {
	r, err := forbear.New("payments", fast, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, r)}
	_, err = client.Post("localhost:1", "text/plain", nil)
	if err == nil || !strings.Contains(err.Error(), `unsupported protocol scheme "localhost"`) {
		t.Errorf("got %v, want the scheme", err)
	}
	req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
	req.Method = "GE T"
	if _, err = client.Transport.RoundTrip(req); err == nil || !strings.Contains(err.Error(), `invalid method "GE T"`) {
		t.Errorf("got %v, want the method", err)
	}
	odd := errors.New(`malformed status "GET", "s3cr3t", "http"`)
	_, err = over(t, &script{steps: []step{fail(odd)}}, fast).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
	if want := `malformed status "GET", "[redacted]", "http"`; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s at its end", err, want)
	}
}

// What the text no longer says can still be asked for.
func TestRedactedErrorsKeepTheirTypes(t *testing.T) {
	req := newRequest(t, http.MethodGet, "http://127.0.0.1:1/?token=s3cr3t", "", "")
	_, err := over(t, &script{steps: []step{innerClient{}.RoundTrip}}, forbear.Policy{Disabled: true}).RoundTrip(req)
	if e, ok := errors.AsType[*url.Error](err); !ok || !strings.Contains(e.URL, "s3cr3t") {
		t.Errorf("no url.Error in %v", err)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("no refused connection in %v", err)
	}
	if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Type != "connection_refused" {
		t.Errorf("it was taken for %v", e)
	}
	// An error without secrets is passed on as it is.
	plain := errors.New("gremlins")
	_, err = over(t, &script{steps: []step{fail(plain)}}, fast).RoundTrip(req)
	if e, _ := errors.AsType[*forbear.Error](err); e.Unwrap() != plain {
		t.Errorf("%v was changed to %v", plain, e.Unwrap())
	}
}
