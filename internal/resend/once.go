package resend

import (
	"context"
	"io"
	"net/http"

	"github.com/forbear-go/forbear/internal/upgrade"
)

// Once returns a RoundTripper that sends requests through next, each of them once, and
// lets no server upgrade: see [Guard] and [upgrade.Refuse]. Whatever forbear sends by
// itself goes through one: over HTTP/2 a server may call for hundreds of sends a second
// that no one has counted, by GOAWAY or REFUSED_STREAM. A nil next is
// http.DefaultTransport.
func Once(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if o, ok := next.(once); ok { // a guard around another one would stop what that lets through
		return o
	}
	return once{next}
}

type once struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o once) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil { // net/http has nothing to send again
		resp, err := o.next.RoundTrip(req)
		upgrade.Refuse(resp)
		return resp, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	var g Guard
	g.Sending(req, o.next)
	resp, err := o.next.RoundTrip(req.WithContext(g.Watch(ctx, cancel)))
	if g.Stopped() && req.Context().Err() == nil {
		if resp != nil {
			_ = resp.Body.Close()
		}
		resp, err = nil, Err
	}
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			go g.Bury(context.WithoutCancel(ctx), Patience)
		}
		cancel()
		return nil, err
	}
	upgrade.Refuse(resp)
	resp.Body = ending{resp.Body, cancel}
	return resp, nil
}

// CloseIdleConnections closes those of the transport below.
func (o once) CloseIdleConnections() {
	if c, ok := o.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// ending is a body whose end is that of its exchange.
type ending struct {
	io.ReadCloser

	cancel func()
}

func (e ending) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}
