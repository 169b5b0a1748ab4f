package forward

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// TestEarlyResponseOverHTTP2: a stream ends when its response does, and does not wait for
// what its caller may still send: a call of messages would end late.
func TestEarlyResponseOverHTTP2(t *testing.T) {
	f := Forwarder{Target: &url.URL{Scheme: "http", Host: "up"}, Send: responding{}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", unread{t})
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.ContentLength = "HTTP/2.0", 2, 0, -1
	f.Forward(t.Context(), httptest.NewRecorder(), r, new(Call))
}
