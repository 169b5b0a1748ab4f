package durable

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// The time that a caller gets: no longer than a gateway's routes give by default
// (policy body_idle), and in all.
const (
	standstill = 30 * time.Second // a body may stand still, or a response not be read
	bodyTime   = 2 * time.Minute  // for a whole body
	leftovers  = 500 * time.Millisecond
)

// errStalled is 408.
var errStalled = errors.New("the body paused or took too long: send it again")

// deadlines bound slow callers, with a token or without. A body is read at the pace of its
// connection, and a connection that says nothing would be kept for ever, with what has
// arrived. The server removes the deadlines at the end of the request.
type deadlines struct {
	idle, whole time.Duration
}

// forBody gives each request's body its time.
func (d deadlines) forBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), idle: d.idle, until: now.Add(d.whole)}
		r.Body = body
		// Before it responds, the server reads what the handler has not.
		_ = body.control.SetReadDeadline(now.Add(d.idle))
		defer func() {
			if !body.ended {
				_ = body.control.SetReadDeadline(time.Now().Add(leftovers))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that may neither stand still nor take too long. On a server without
// deadlines, such as a test's, it has the caller's pace.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
	idle    time.Duration
	until   time.Time
	ended   bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline)
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF: // now the server looks whether the caller is still there
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errStalled
	}
	return n, err
}

// writer returns what writes a response to a caller who reads: each part has its time, the
// headers included. The server first reads what the handler has not of a body: where that
// stands still, the response would come as its own time ends.
func (d deadlines) writer(w http.ResponseWriter) io.Writer {
	t := timedWriter{w, http.NewResponseController(w), d.idle + leftovers}
	_ = t.control.SetWriteDeadline(time.Now().Add(t.time))
	return t
}

type timedWriter struct {
	to      io.Writer
	control *http.ResponseController
	time    time.Duration
}

func (w timedWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.time))
	return w.to.Write(p)
}
