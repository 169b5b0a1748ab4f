package durable

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// unwanted is a body that no one should read.
type unwanted struct{ t *testing.T }

func (u unwanted) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestTooLargeByItsLength: a request that says that it is too large is refused by its
// headers, and its caller need not send it (RFC 9110 section 10.1.1).
func TestTooLargeByItsLength(t *testing.T) {
	s, stop := start(t, Options{})
	defer stop()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/messages", unwanted{t})
	r.ContentLength = s.maxRequest + 1
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
