package idempotency

import (
	"bytes"
	"maps"
	"net/http"
)

// recorder holds a handler's response back until it is stored. A response that is
// declared as streamed, or grows beyond the limit, is opened: a tombstone is
// stored first, and what follows goes straight to the client.
type recorder struct {
	w      http.ResponseWriter
	header http.Header // the handler's
	sent   http.Header // as of WriteHeader
	status int
	buf    bytes.Buffer
	limit  int64 // negative: none
	stream bool

	// open stores the tombstone and reports whether the response may go out.
	open   func(tombstone string) bool
	opened bool
	lost   bool // not ours to send: the claim has passed to another
}

// newRecorder returns a recorder for one run. The handler gets a copy of the header
// map: what it sets must not show before the response is stored.
func newRecorder(w http.ResponseWriter, limit int64, stream bool) *recorder {
	return &recorder{w: w, header: w.Header().Clone(), limit: limit, stream: stream}
}

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader implements [http.ResponseWriter]. Informational responses are not
// passed on, and a switch of protocols cannot be stored: 500.
func (r *recorder) WriteHeader(status int) {
	if r.status != 0 || status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	if status == http.StatusSwitchingProtocols {
		status = http.StatusInternalServerError
	}
	r.status, r.sent = status, r.Header().Clone()
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	switch {
	case r.lost:
		return len(p), nil
	case r.opened:
		_, _ = r.w.Write(p) // a client that has left does not end the work
		return len(p), nil
	}
	r.buf.Write(p)
	if r.limit >= 0 && int64(r.buf.Len()) > r.limit {
		r.pass(Oversize)
	}
	return len(p), nil
}

// Flush implements [http.Flusher]; it does nothing unless the response is
// streamed.
func (r *recorder) Flush() {
	if !r.stream || r.lost {
		return
	}
	r.WriteHeader(http.StatusOK)
	if r.pass(Streamed); !r.lost {
		_ = http.NewResponseController(r.w).Flush()
	}
}

// Unsend forgets what the handler has written, for another response in its place, and
// reports whether nothing of it has gone out. A proxy uses it whose response broke off.
func (r *recorder) Unsend() bool {
	if r.opened {
		return false
	}
	r.buf.Reset()
	r.status, r.sent = 0, nil
	return true
}

// pass opens the response.
func (r *recorder) pass(tombstone string) {
	if r.opened || r.lost {
		return
	}
	if r.lost = !r.open(tombstone); r.lost {
		r.buf.Reset()
		return
	}
	r.send()
	r.opened = true
}

// send gives the client what is held back.
func (r *recorder) send() {
	if r.opened {
		return
	}
	r.WriteHeader(http.StatusOK)
	h := r.w.Header()
	clear(h)
	maps.Copy(h, r.sent)
	r.w.WriteHeader(r.status)
	_, _ = r.w.Write(r.buf.Bytes())
	r.buf.Reset()
}
