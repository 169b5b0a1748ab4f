package forward

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

// unread is a body that no one should read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the rest of the body was read")
	return 0, io.EOF
}
func (unread) Close() error { return nil }

// responding is a transport that responds before it reads anything.
type responding struct{}

func (responding) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// allSteps takes all steps of an exchange.
func allSteps(t *testing.T, w http.ResponseWriter, r *http.Request, next http.RoundTripper) {
	t.Helper()
	var x Exchange
	defer x.End()
	if _, err := x.Outgoing(t.Context(), &Target{URL: &url.URL{Scheme: "http", Host: "up"}}, w, r); err != nil {
		t.Fatal(err)
	}
	resp, err := x.Send(next)
	if err != nil {
		t.Fatal(err)
	}
	if result := x.Respond(resp); result.Err != nil {
		t.Error(result.Err)
	}
	x.Flush()
}

// TestEarlyResponseOverHTTP2: a stream ends when its response does, and does not wait for
// what its caller may still send: a call of messages would end late.
func TestEarlyResponseOverHTTP2(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", unread{t})
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.ContentLength = "HTTP/2.0", 2, 0, -1
	allSteps(t, httptest.NewRecorder(), r, responding{})
}

// answering is a transport that responds while the body is being read.
type answering struct{ read chan struct{} }

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	go func() {
		_, _ = io.Copy(io.Discard, r.Body)
		close(a.read)
	}()
	return responding{}.RoundTrip(r)
}

// lone is a body in memory, which must not be read by two at a time.
type lone struct {
	t       *testing.T
	entered chan struct{} // received from in each Read
	end     chan struct{}
	reading atomic.Bool
}

func (l *lone) Read([]byte) (int, error) {
	if l.reading.Swap(true) {
		l.t.Error("the body is read by two at a time")
		return 0, io.EOF
	}
	defer l.reading.Store(false)
	l.entered <- struct{}{}
	<-l.end
	return 0, io.EOF
}
func (*lone) Close() error { return nil }

// late responds when the body is being read.
type late struct {
	answering
	body *lone
}

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.answering.RoundTrip(r)
	<-l.body.entered
	return resp, err
}

// TestEarlyResponseToABodyInMemory: what stands between the gateway and the connection may
// have read the body and given another in its place. That one has no connection to be
// brought to its end, and may still be on its way to the target.
func TestEarlyResponseToABodyInMemory(t *testing.T) {
	body := &lone{t: t, entered: make(chan struct{}, 1), end: make(chan struct{})}
	sent := answering{make(chan struct{})}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", body)
	w := httptest.NewRecorder()
	allSteps(t, w, r, late{sent, body})
	close(body.end)
	<-sent.read
	if got := w.Header().Get("Connection"); got != "" {
		t.Errorf("Connection: %s, though the body's connection is not held by it", got)
	}
}
