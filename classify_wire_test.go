package forbear_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
)

// The errors of this file are those of the toolchain's own net/http, over real
// sockets: where it exports neither a type nor a value, ClassifyNet goes by its
// text, and an update that changes the text fails here.

// accepting serves each connection with one function, which owns it.
func accepting(t *testing.T, serve func(c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// rawServer serves each connection with one function, which gets it after the head
// of the first request.
func rawServer(t *testing.T, serve func(c net.Conn)) (address string) {
	t.Helper()
	return accepting(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			serve(c)
		}
	})
}

// failed sends a request and returns its error.
func failed(t *testing.T, transport *http.Transport, req *http.Request) error {
	t.Helper()
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("status %d, want an error", resp.StatusCode)
	}
	return err
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// classified fails the test unless err is of the class and has the label, wrapped
// once more too, and unless a breaker makes of it what it makes of such failures.
func classified(t *testing.T, err error, class forbear.Class, label string, unsent bool) {
	t.Helper()
	for _, e := range []error{err, fmt.Errorf("asking the dependency: %w", err), errors.Join(errors.New("other"), err)} {
		f, ok := edge.ClassifyNet(e)
		if !ok || f.Class != class || f.Type != label || f.Unsent != unsent || f.Err != e {
			t.Errorf("%v: got %v %q, unsent %v; want %v %q, unsent %v", e, f.Class, f.Type, f.Unsent, class, label, unsent)
		}
		if disowned := unsent && strings.HasPrefix(label, "http2_"); f.Disowned != disowned {
			t.Errorf("%v: disowned %v, want %v", e, f.Disowned, disowned)
		}
		// A connection that ends in good order speaks against no one.
		want := !f.Disowned || label == "http2_refused_stream"
		if o, counts := edge.Outcome(&f); class.Retryable() && (counts != want || want && o != breaker.Failed) {
			t.Errorf("%v: a breaker counts %v, %v; want a failure: %v", e, o, counts, want)
		}
	}
}

// http2Client speaks HTTP/2 in the clear.
func http2Client() *http.Transport {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: &p}
}

// silent is a server of HTTP/2 that hears everything and says nothing.
func silent(t *testing.T) (url string) {
	t.Helper()
	return "http://" + accepting(t, func(c net.Conn) {
		_, _ = c.Write(frame(frameSettings, 0, 0))
		_, _ = io.Copy(io.Discard, c)
	})
}

func TestHTTP2ConnectionLost(t *testing.T) {
	client := http2Client()
	client.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: 20 * time.Millisecond}
	classified(t, failed(t, client, get(t, silent(t))), forbear.ClassTransient, "http2_connection_lost", false)
}

// TestHTTP2ConnectionErrors: what ends a connection, or what net/http could not
// send again by itself, as the client of the request sees it.
func TestHTTP2ConnectionErrors(t *testing.T) {
	stream := func(r io.Reader) *http.Request {
		req := get(t, "http://unused")
		req.Method, req.Body = http.MethodPut, io.NopCloser(r)
		return req
	}
	for _, tt := range []struct {
		name   string
		req    *http.Request
		answer []byte
		label  string
		unsent bool
	}{
		{"GOAWAY below the stream, a body that is sent", stream(strings.NewReader("body")), frame(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "http2_goaway", true},
		{"REFUSED_STREAM, a body that is sent", stream(strings.NewReader("body")), frame(frameRSTStream, 0, 1, 0, 0, 0, 7), "http2_refused_stream", true},
		{"PROTOCOL_ERROR, a body that is sent", stream(strings.NewReader("body")), frame(frameRSTStream, 0, 1, 0, 0, 0, 1), "http2_not_resent", false},
		{"GOAWAY of a new connection", get(t, "http://unused"), frame(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), "http2_goaway", false},
		{"a frame that must not be", get(t, "http://unused"), frame(0x0, 0, 0, 1), "http2_connection_error", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.Parse(http2Answer(t, tt.answer))
			if err != nil {
				t.Fatal(err)
			}
			tt.req.URL = u
			classified(t, failed(t, http2Client(), tt.req), forbear.ClassTransient, tt.label, tt.unsent)
		})
	}
}

// TestHTTP2GoAwayAlone: golang.org/x/net/http2 hands over what net/http wraps or sends
// again without an end. The text is taken from net/http's.
func TestHTTP2GoAwayAlone(t *testing.T) {
	req := get(t, http2Answer(t, frame(frameGoAway, 0, 0, make([]byte, 8)...)))
	req.Method, req.Body = http.MethodPut, io.NopCloser(strings.NewReader("body"))
	_, text, _ := strings.Cut(failed(t, http2Client(), req).Error(), "[")
	text, _, _ = strings.Cut(text, "]")
	classified(t, errors.New(text), forbear.ClassTransient, "http2_goaway", true)
}

// TestProxyRefusesToConnect: net/http has no more than the text of the proxy's
// status for a tunnel that it did not get.
func TestProxyRefusesToConnect(t *testing.T) {
	for _, tt := range []struct {
		status int
		class  forbear.Class
		label  string
	}{
		{502, forbear.ClassTransient, "proxy_502"},
		{503, forbear.ClassTransient, "proxy_503"},
		{504, forbear.ClassTimeout, "proxy_504"},
		{403, forbear.ClassTerminal, "proxy_403"},
		{407, forbear.ClassTerminal, "proxy_407"},
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect {
				t.Errorf("the proxy got %s, want CONNECT", r.Method)
			}
			w.WriteHeader(tt.status)
		}))
		u, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		err = failed(t, &http.Transport{Proxy: http.ProxyURL(u)}, get(t, "https://dependency.test/"))
		proxy.Close()
		classified(t, err, tt.class, tt.label, true)
	}
	// The same words of others say nothing of a proxy: most likely a status has
	// become an error, and the request was sent.
	for _, err := range []error{
		errors.New("Bad Gateway"),
		fmt.Errorf("charge: %w", errors.New("Service Unavailable")),
		&url.Error{Op: "Get", URL: "http://dependency.test/", Err: errors.New("Bad Gateway")},
		&url.Error{Op: "Get", URL: "https://dependency.test/", Err: fmt.Errorf("charge: %w", errors.New("Bad Gateway"))},
	} {
		if f, ok := edge.ClassifyNet(err); ok {
			t.Errorf("%#v: got %v %q, want nothing", err, f.Class, f.Type)
		}
	}
}

// TestMalformedResponses: what came was no response, so that the server broke off;
// the request has been sent.
func TestMalformedResponses(t *testing.T) {
	for name, response := range map[string]string{
		"no status line":       "SSH-2.0-OpenSSH_9.6\r\n\r\n",
		"no status code":       "HTTP/1.1 OK fine\r\n\r\n",
		"a status of letters":  "HTTP/1.1 2xx fine\r\n\r\n",
		"no version":           "HTTX/1.1 200 OK\r\n\r\n",
		"a line that is none":  "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
		"a length of letters":  "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
		"an empty length":      "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"two lengths":          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"a header without end": "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 8<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address := rawServer(t, func(c net.Conn) {
				_, _ = io.WriteString(c, response)
				_, _ = io.Copy(io.Discard, c) // until the client leaves
			})
			err := failed(t, &http.Transport{MaxResponseHeaderBytes: 4 << 10}, get(t, "http://"+address))
			classified(t, err, forbear.ClassTransient, "malformed_response", false)
		})
	}
}

// TestHTTPToHTTPSClient: a server that does not speak TLS will not the next time.
func TestHTTPToHTTPSClient(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(get(t, strings.Replace(s.URL, "http:", "https:", 1)))
	if err == nil {
		resp.Body.Close()
		t.Fatal("no error")
	}
	classified(t, err, forbear.ClassTerminal, "tls_record", false)
	// http.Client has another error for it, which no one need recognize: what is
	// unknown is not retried.
	err = failed(t, &http.Transport{}, get(t, strings.Replace(s.URL, "http:", "https:", 1)))
	if f, ok := edge.ClassifyNet(err); ok && f.Class.Retryable() {
		t.Errorf("%v: got %v %q, want nothing that is retried", err, f.Class, f.Type)
	}
}

func TestUnixSocketIsMissing(t *testing.T) {
	dial := func(path string) error {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path)
		if err == nil {
			c.Close()
			t.Fatal("dialed")
		}
		return err
	}
	dir := t.TempDir()
	classified(t, dial(filepath.Join(dir, "none.sock")), forbear.ClassTransient, "socket_missing", true)
	// A server that has gone has left its file.
	stale := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	classified(t, dial(stale), forbear.ClassTransient, "connection_refused", true)
	// A file that is missing is no socket.
	_, err = os.Open(filepath.Join(dir, "none"))
	if f, ok := edge.ClassifyNet(err); ok {
		t.Errorf("%v: got %v %q, want nothing", err, f.Class, f.Type)
	}
}

// TestUnreachableIsUnsentInTheDialOnly: the way to a host may break while a response
// is awaited.
func TestUnreachableIsUnsentInTheDialOnly(t *testing.T) {
	for errno, label := range map[syscall.Errno]string{syscall.ENETUNREACH: "network_unreachable", syscall.EHOSTUNREACH: "host_unreachable"} {
		for op, unsent := range map[string]bool{"dial": true, "read": false, "write": false} {
			err := &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError("call", errno)}
			classified(t, err, forbear.ClassTransient, label, unsent)
		}
		classified(t, errno, forbear.ClassTransient, label, false)
		proxied := &net.OpError{Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errno}}
		classified(t, proxied, forbear.ClassTransient, label, true)
	}
}

// TestClosedUnderTheRequest: the server closes a pooled connection between its being
// picked and its being written, which net/http repeats for a GET and not for a PUT.
func TestClosedUnderTheRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	client := s.Client()
	seen := map[string]int{}
	for range 20 {
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			s.CloseClientConnections()
			time.Sleep(10 * time.Millisecond) // the end arrives
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL, strings.NewReader("payload"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err = client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			continue
		}
		f, ok := edge.ClassifyNet(err)
		if !ok || f.Class != forbear.ClassTransient || f.Unsent {
			t.Fatalf("%v: got %v %q", err, f.Class, f.Type)
		}
		seen[f.Type]++
	}
	if seen["connection_closed"] == 0 {
		t.Errorf("net/http never said that the server closed an idle connection: %v", seen)
	}
}

// TestTextsOfHTTP2 are those of the races that a test cannot win at will.
func TestTextsOfHTTP2(t *testing.T) {
	for text, unsent := range map[string]bool{
		"http2: client conn is closed": false, "http2: client connection force closed via ClientConn.Close": false,
		"http2: client conn not usable": true, "http2: client conn could not be established": false,
		"net/http: cannot rewind body after connection loss": true,
	} {
		classified(t, &url.Error{Op: "Put", URL: "https://a/", Err: errors.New(text)}, forbear.ClassTransient, "http2_connection_lost", unsent)
	}
}

// TestProxiesSpellInTheirOwnWay what they refuse a tunnel with.
func TestProxiesSpellInTheirOwnWay(t *testing.T) {
	for text, label := range map[string]string{
		"Gateway Time-out": "proxy_504", "Proxy Error": "proxy_502", "Service unavailable": "proxy_503",
	} {
		f, ok := edge.ClassifyNet(&url.Error{Op: "Get", URL: "https://a/", Err: errors.New(text)})
		if !ok || f.Type != label || !f.Unsent || !f.Class.Retryable() {
			t.Errorf("%s: got %v %q", text, f.Class, f.Type)
		}
	}
}
