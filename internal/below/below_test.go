package below_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/below"
)

type stub struct {
	seen   []string
	closed int
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	s.seen = append(s.seen, req.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

func (s *stub) CloseIdleConnections() { s.closed++ }

// A program that has replaced http.DefaultTransport, as tracing and mocks do, is
// served by what it put there.
func TestReplacedDefault(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	mock := &stub{}
	http.DefaultTransport = mock
	client := &http.Client{Transport: below.Transport(time.Second)}
	http.DefaultTransport = client.Transport // even then it ends
	resp, err := client.Get("http://payments.test/first")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(mock.seen) != 1 || mock.seen[0] != "/first" {
		t.Errorf("the transport in place saw %q", mock.seen)
	}
	if client.CloseIdleConnections(); mock.closed != 1 {
		t.Errorf("idle connections closed %d times, want once", mock.closed)
	}
}

// What a program has set on the default transport stays: its way to dial, within the
// time to connect.
func TestDialOfTheDefault(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	own := before.(*http.Transport).Clone()
	asked := ""
	own.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		asked = address
		<-ctx.Done()
		return nil, ctx.Err()
	}
	http.DefaultTransport = own
	_, err := (&http.Client{Transport: below.Transport(20 * time.Millisecond)}).Get("http://payments.test/")
	if asked != "payments.test:80" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dialed %q, %v", asked, err)
	}
}

// An untouched default is copied: what is changed on it stays ours.
func TestCopyOfTheDefault(t *testing.T) {
	base, ok := below.Transport(time.Second).(*http.Transport)
	if !ok || base == http.DefaultTransport || !base.ForceAttemptHTTP2 || base.Proxy == nil {
		t.Errorf("got %#v, want a copy of the default transport", base)
	}
	if base.HTTP2.SendPingTimeout < 5*time.Minute || base.HTTP2.PingTimeout == 0 || base.HTTP2.WriteByteTimeout == 0 {
		t.Errorf("pings: %+v", base.HTTP2)
	}
	own := below.Pinged(&http.HTTP2Config{SendPingTimeout: time.Second, WriteByteTimeout: time.Hour, MaxConcurrentStreams: 3})
	if own.SendPingTimeout != time.Second || own.WriteByteTimeout != time.Hour || own.PingTimeout != 0 || own.MaxConcurrentStreams != 3 {
		t.Errorf("what the program has set became %+v", own)
	}
}
