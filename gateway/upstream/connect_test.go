package upstream_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// TestNoConnectionIsNoAttempt: a POST that finds an address closed goes to another one,
// with its body, and is sent once.
func TestNoConnectionIsNoAttempt(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, string(text))
	}))
	defer srv.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	u, err := upstream.New(upstream.Config{Endpoints: []string{closed.Addr().String(), srv.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var want []string
	for i := range 40 {
		body := ""
		if i%2 == 0 {
			body = fmt.Sprint("body ", i)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.NopCloser(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		if body == "" {
			req.Body = http.NoBody
		}
		resp, err := u.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_ = resp.Body.Close()
		want = append(want, body)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the living address got %q, want %q", got, want)
	}
}

// standing is a body that begins and then stands still until it is closed.
type standing struct {
	begun  bool
	once   sync.Once
	closed chan struct{}
}

func (s *standing) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return copy(p, "begun"), nil
	}
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *standing) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// TestFailedUploadIsNotWaitedFor: an attempt whose server resets it ends at once, at one
// address of several as at one alone: over HTTP/2 net/http closes the body, which ends the
// Read of a caller who has stopped sending, and waits for that.
func TestFailedUploadIsNotWaitedFor(t *testing.T) {
	url := h2c(t, func(c net.Conn, stream uint32) { frame(c, 3, 0, stream, 0, 0, 0, 2) })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	both := []string{"127.0.0.1:" + port, "localhost:" + port}
	for n := 1; n <= len(both); n++ {
		u := reach(t, upstream.Config{HTTP2: upstream.HTTP2Only, Endpoints: both[:n]})
		body := &standing{closed: make(chan struct{})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = -1
		ended := make(chan error, 1)
		go func() {
			_, err := u.RoundTrip(req)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%d addresses: the request was not reset", n)
			}
			<-body.closed
		case <-time.After(10 * time.Second):
			t.Errorf("%d addresses: the attempt waits for a caller who has stopped sending", n)
			_ = body.Close()
			<-ended
		}
	}
}
