package upstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// maxConnects is at how many addresses one attempt looks for a connection. Where none is
// to be had nothing was sent, whatever the method, and to look further costs the
// dependency nothing: it is not a retry.
const maxConnects = 3

// unconnected reports whether an attempt has failed for want of a connection, and its
// caller is still there.
func unconnected(r *http.Request, err error) bool {
	if err == nil || r.Context().Err() != nil {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// heldBody is the body of a request that may go to another address: a transport closes
// it when it finds no connection. One that has been read goes nowhere else, and is closed
// at once: over HTTP/2 a transport waits for a Read that its Close is to end. Nil is a
// body that there is not.
type heldBody struct {
	io.ReadCloser
	mu     sync.Mutex
	read   bool
	closed bool // and the Close was held back
	gone   bool // it belongs to the transport
}

// holdBody gives the request such a body, where it has one.
func holdBody(r **http.Request) *heldBody {
	if (*r).Body == nil || (*r).Body == http.NoBody {
		return nil
	}
	own := **r // shallow, with a body of its own
	h := &heldBody{ReadCloser: own.Body}
	own.Body = h
	*r = &own
	return h
}

// unread reports whether nothing of the body is gone.
func (h *heldBody) unread() bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.read
}

// release lets the body be closed, now if it was closed before.
func (h *heldBody) release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	closed := h.closed
	h.gone = true
	h.mu.Unlock()
	if closed {
		_ = h.ReadCloser.Close()
	}
}

// Read implements [io.Reader].
func (h *heldBody) Read(p []byte) (int, error) {
	h.mu.Lock()
	h.read = true
	h.mu.Unlock()
	return h.ReadCloser.Read(p)
}

// Close implements [io.Closer].
func (h *heldBody) Close() error {
	h.mu.Lock()
	passed := h.gone || h.read
	h.closed = h.closed || !passed
	h.mu.Unlock()
	if !passed {
		return nil
	}
	return h.ReadCloser.Close()
}
