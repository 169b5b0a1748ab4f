package direct

import (
	"io"
	"net/http"
	"time"
)

// sendByNext sends a request through net/http, and closes what it leaves behind when no
// connection is kept any more.
func (t *Transport) sendByNext(r *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(r)
	if err != nil {
		t.end()
		return nil, err
	}
	if resp.Body == http.NoBody {
		t.end()
		return resp, nil
	}
	b := &endingBody{resp.Body, t}
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = &endingConn{b, w}
	} else {
		resp.Body = b
	}
	return resp, nil
}

// Close closes the connections that no request uses, and each other one when its
// request is over. Requests are still served.
func (t *Transport) Close() {
	t.closed.Store(true)
	t.end()
}

// end closes what a request leaves behind. It does so again a little later: over HTTP/2
// a stream may count for a moment after its response has ended, and a connection that
// was being made may come when no request waits for it any more.
func (t *Transport) end() {
	if !t.closed.Load() {
		return
	}
	t.CloseIdleConnections()
	if t.sweeping.CompareAndSwap(false, true) {
		time.AfterFunc(time.Second, func() {
			t.sweeping.Store(false)
			t.CloseIdleConnections()
		})
	}
}

// endingBody is the body of a response of net/http. Its end is that of the request.
type endingBody struct {
	io.ReadCloser
	t *Transport
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.t.end()
	return err
}

// endingConn is that of an upgraded connection.
type endingConn struct {
	*endingBody
	io.Writer
}

// CloseWrite closes the way to the target alone, where the connection can.
func (c *endingConn) CloseWrite() error {
	if w, ok := c.ReadCloser.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return http.ErrNotSupported
}

// closeOld closes the connections that have been idle for too long, and those that
// their server has closed.
func (t *Transport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, left := time.Now().Add(-t.Next.IdleConnTimeout), 0
	for at, list := range t.idle {
		kept := list[:0]
		for _, c := range list {
			if c.since.After(before) && c.alive() {
				kept = append(kept, c)
			} else {
				_ = c.Close()
			}
		}
		clear(list[len(kept):])
		if left += len(kept); len(kept) > 0 {
			t.idle[at] = kept
		} else {
			delete(t.idle, at)
		}
	}
	if t.sweep = nil; left > 0 {
		t.sweep = time.AfterFunc(t.Next.IdleConnTimeout/2, t.closeOld)
	}
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	for _, list := range t.idle {
		for _, c := range list {
			_ = c.Close()
		}
	}
	t.idle = nil
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	t.mu.Unlock()
	t.Next.CloseIdleConnections()
}
