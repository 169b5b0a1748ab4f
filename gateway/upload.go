package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// upload is the body of a request that is passed on. It stands still for as long as
// the policy of the dependency allows, and no longer: a Read that waits for a caller
// who has stopped sending can be ended by its connection alone.
type upload struct {
	io.ReadCloser
	x    *incoming
	in   *http.ResponseController
	idle time.Duration
}

// watchUpload returns r with such a body, if it has one and the policy sets a bound.
func (x *incoming) watchUpload(w http.ResponseWriter, r *http.Request, idle time.Duration) *http.Request {
	if r.Body != nil && r.Body != http.NoBody && idle > 0 {
		r.Body = &upload{r.Body, x, http.NewResponseController(w), idle}
	}
	return r
}

// Read implements [io.Reader]. After the body's end the connection is the server's
// again, which looks by itself whether the caller is still there. After any other
// error the time stays over, or the server would wait for the rest before it responds.
func (u *upload) Read(p []byte) (int, error) {
	_ = u.in.SetReadDeadline(time.Now().Add(u.idle))
	n, err := u.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		_ = u.in.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.x.late.Store(true)
	}
	return n, err
}
