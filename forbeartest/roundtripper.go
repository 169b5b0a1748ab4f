package forbeartest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/forbear-go/forbear/internal/wait"
)

// RoundTripper follows a script without a network, with the errors that a
// network would give. Its delays and hangs are timers and contexts, so it may
// be used in a testing/synctest bubble. It is safe for concurrent use; the zero
// value responds 200.
type RoundTripper struct {
	script
}

// NewRoundTripper returns a RoundTripper with the given script.
func NewRoundTripper(steps ...Step) *RoundTripper {
	return &RoundTripper{script{steps: steps}}
}

// RoundTrip implements [http.RoundTripper].
func (rt *RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	step := rt.take(r, false)
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper must; its error is the request's own affair
	}
	if step.Delay > 0 && !wait.Sleep(r.Context(), step.Delay) {
		return nil, r.Context().Err()
	}
	switch {
	case step.Err != nil:
		return nil, step.Err
	case step.Break == BreakBeforeHeaders:
		return nil, connectionReset()
	case step.Break == BreakHang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return step.response(r), nil
}

// errClosed is what reading a closed body returns.
var errClosed = errors.New("read on closed response body")

func connectionReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

func (s Step) response(r *http.Request) *http.Response {
	code := s.status()
	resp := &http.Response{
		Status:        fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode:    code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        s.Header.Clone(),
		Body:          &body{Reader: strings.NewReader(s.Body)},
		ContentLength: int64(len(s.Body)),
		Request:       r,
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	switch s.Break {
	case BreakAfterHeaders:
		resp.Body = &body{Reader: broken{}}
	case BreakMidBody:
		half := []byte(s.Body)[:(len(s.Body)+1)/2]
		resp.Body = &body{Reader: io.MultiReader(bytes.NewReader(half), broken{})}
	}
	return resp
}

// broken is the end of a body whose connection was reset.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, connectionReset() }

// body refuses to be read after Close, as a real one does.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, errClosed
	}
	return b.Reader.Read(p)
}

func (b *body) Close() error {
	b.closed = true
	return nil
}
