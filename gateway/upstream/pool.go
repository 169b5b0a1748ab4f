package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/gateway/internal/direct"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// pool is the connections of one transport, from its making until it is closed. It
// is safe for concurrent use.
type pool struct {
	transport *http.Transport
	material  *certfile.Material             // that its connections are made with; nil for none
	direct    direct.Transport               // over it
	fault     atomic.Pointer[mismatch.Error] // what a connection has found out last
	closed    atomic.Bool                    // no connection is kept any more
	sweeping  atomic.Bool                    // it is looked for more of them soon
}

func newPool(t *http.Transport) *pool {
	return &pool{transport: t, direct: direct.Transport{Next: t}}
}

// RoundTrip implements [http.RoundTripper].
func (p *pool) RoundTrip(r *http.Request) (*http.Response, error) {
	known := p.fault.Load()
	resp, err := p.direct.RoundTrip(withVersion(r))
	if err != nil {
		p.end()
		return nil, p.because(err, known)
	}
	resp.Body = p.ending(resp.Body)
	return resp, nil
}

// because adds to an error what a connection has found out since known was loaded.
// What net/http says of a connection that both sides broke off depends on which of
// its goroutines was first.
func (p *pool) because(err error, known *mismatch.Error) error {
	found := p.fault.Load()
	if found == nil || found == known {
		return err
	}
	if _, said := errors.AsType[mismatch.Error](err); said {
		return err
	}
	return fmt.Errorf("%w: %w", *found, err)
}

// close closes the connections that no request uses, and each other one when its
// request is over. Requests are still served.
func (p *pool) close() {
	p.closed.Store(true)
	p.end()
}

// end closes what a request leaves behind when no connection is kept any more. It
// does so again a little later: over HTTP/2 a stream may count for a moment after its
// response has ended, and a connection that was being made may come when no request
// waits for it any more.
func (p *pool) end() {
	if !p.closed.Load() {
		return
	}
	p.direct.CloseIdleConnections()
	if p.sweeping.CompareAndSwap(false, true) {
		time.AfterFunc(time.Second, func() {
			p.sweeping.Store(false)
			p.direct.CloseIdleConnections()
		})
	}
}

// ending returns a body whose end is the request's end. A connection that was
// upgraded is written to as well.
func (p *pool) ending(body io.ReadCloser) io.ReadCloser {
	b := &endingBody{ReadCloser: body, pool: p}
	if w, ok := body.(io.Writer); ok {
		return &endingConn{b, w}
	}
	return b
}

// endingBody is the body of a request that is under way.
type endingBody struct {
	io.ReadCloser
	pool *pool
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.pool.end()
	return err
}

// endingConn is that of an upgraded connection.
type endingConn struct {
	*endingBody
	io.Writer
}
