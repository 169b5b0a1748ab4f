package httpretry

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/forbear-go/forbear"
)

// ender is an [Envelope] whose protocol says at the end of a response what came of the
// call, in trailers.
type ender interface {
	// Ended judges a response that was handed over as good and has come to its end.
	Ended(resp *http.Response) forbear.Failure
}

// succeed ends a call whose response is good as far as it has come.
func (x *exchange) succeed(ctx context.Context, call *forbear.Call, resp *http.Response) {
	e, ok := x.envelope.(ender)
	if !ok || resp.Body == nil || resp.Body == http.NoBody {
		call.Succeed(ctx)
		return
	}
	resp.Body = &endingBody{ReadCloser: resp.Body, resp: resp, judge: e, begun: call.Begun(ctx)}
}

// endingBody judges a response at its end, once. One whose reader leaves before was good
// as far as it came; and a probe of the breaker's is good with its first bytes, since a
// stream may live for hours, and the others wait for it.
type endingBody struct {
	io.ReadCloser
	resp  *http.Response
	judge ender
	begun forbear.Begun
	known atomic.Bool
}

// Read implements [io.Reader].
func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended(b.judge.Ended(b.resp))
	case err != nil, n > 0 && b.begun.Probe():
		b.ended(forbear.Failure{Class: forbear.ClassSuccess})
	}
	return n, err
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.ended(forbear.Failure{Class: forbear.ClassSuccess})
	return err
}

func (b *endingBody) ended(f forbear.Failure) {
	if b.known.CompareAndSwap(false, true) {
		b.begun.Ended(f)
	}
}
