package httpretry

import (
	"io"
	"net/http"

	"github.com/forbear-go/forbear/internal/layer"
)

// marking adds the exhaustion mark to a failed response.
type marking struct {
	http.ResponseWriter
	below *layer.Exhaustion
	wrote bool
}

// marked returns a marking writer that can be hijacked, or push, if w can: libraries ask
// the writer itself, and not an [http.ResponseController].
func marked(w http.ResponseWriter, below *layer.Exhaustion) http.ResponseWriter {
	m := &marking{ResponseWriter: w, below: below}
	switch w := w.(type) {
	case http.Hijacker: // over HTTP/1
		return struct {
			*marking
			http.Hijacker
		}{m, w}
	case http.Pusher: // over HTTP/2
		return struct {
			*marking
			http.Pusher
		}{m, w}
	}
	return m
}

// WriteHeader adds the mark to a failure of the server, which is when the calls
// below matter. An informational status is not the response yet.
func (m *marking) WriteHeader(status int) {
	if !m.wrote && status >= 200 {
		m.wrote = true
		if m.below.Below() && (status >= 500 || status == http.StatusTooManyRequests) {
			m.Header().Set(HeaderExhausted, "true")
		}
	}
	m.ResponseWriter.WriteHeader(status)
}

// Write sends a response without a status, which is a success and needs no mark.
func (m *marking) Write(p []byte) (int, error) {
	m.wrote = true // an implicit 200
	return m.ResponseWriter.Write(p)
}

// ReadFrom lets a file go out without a copy of it, where the server can do that.
func (m *marking) ReadFrom(r io.Reader) (int64, error) {
	m.wrote = true
	return io.Copy(m.ResponseWriter, r)
}

// Flush lets streaming handlers through.
func (m *marking) Flush() {
	m.wrote = true
	_ = http.NewResponseController(m.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (m *marking) Unwrap() http.ResponseWriter { return m.ResponseWriter }
