package direct

import (
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
		if err != io.EOF && b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
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
	if whole && untouched && b.keep && b.c.r.Buffered() == 0 {
		b.c.t.put(b.c)
		return
	}
	_ = b.c.Close()
}
