package direct

import (
	"cmp"
	"context"
	"io"
	"sync/atomic"
)

// body is that of a response. Like those of net/http it may be closed while it is being
// read.
type body struct {
	io.ReadCloser
	c    *conn
	ctx  context.Context //nolint:containedctx // of the request, which ends the body too
	stop func() bool     // the watch over ctx
	up   *upload         // of the request, or nil
	keep bool            // the connection may serve another request
	over atomic.Bool
}

// Read gives the connection back at the end.
func (b *body) Read(p []byte) (int, error) {
	if b.over.Load() {
		return b.ReadCloser.Read(p) // it has its end, or its error, by itself
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if err != io.EOF {
			if b.up != nil && b.up.ended(0) {
				err = cmp.Or(b.up.err, err)
			}
			err = cmp.Or(context.Cause(b.ctx), err)
		}
		b.end(err)
	}
	return n, err
}

// Close closes the connection, unless the body came to its end.
func (b *body) Close() error {
	b.end(io.ErrUnexpectedEOF)
	return nil
}

// end gives the connection back after err, once: nil and [io.EOF] are a body that was
// read in full. What follows a response on its connection belongs to no request.
func (b *body) end(err error) {
	if b.over.Swap(true) {
		return
	}
	untouched := b.stop()
	whole := err == nil || err == io.EOF
	sent := func() bool { return b.up == nil || b.up.ended(reuseWait) && b.up.err == nil }
	if whole && untouched && b.keep && sent() && b.c.r.Buffered() == 0 {
		b.c.t.put(b.c)
		return
	}
	_ = b.c.Close()
}
