package direct

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// upload is a request with a body on its way to the server, on a goroutine of its own:
// the response may come before its end. The goroutine ends with the request, or when
// the connection is closed and the body's Read has returned, as net/http's does.
type upload struct {
	io.ReadCloser
	fault atomic.Pointer[error] // what the body's Read returned, other than its end
	done  chan struct{}
	err   error // why the request was not written in full; to be read after done is closed
}

// Read reads the body, and remembers whose fault it is that it ends.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		u.fault.CompareAndSwap(nil, &err)
	}
	return n, err
}

// begin starts the upload of r on c.
func begin(c *conn, r *http.Request) *upload {
	u := &upload{ReadCloser: r.Body, done: make(chan struct{})}
	out := *r
	out.Body = u
	go u.run(c, &out)
	return u
}

// run writes the request; what the connection knows of that is for run alone until done
// is closed. A server that takes no more of it may have responded, and is read on; after
// any other fault there is no response to wait for.
func (u *upload) run(c *conn, r *http.Request) {
	err := r.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	over := err != nil
	if fault := u.fault.Load(); fault != nil {
		u.err = *fault
	} else if c.broke != nil { // net/http may take it for the body's fault, and hide it
		u.err, over = c.broke, false
	} else if err != nil {
		u.err = fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err) // as net/http has it
	}
	close(u.done)
	if over {
		c.cut()
	}
}

// ended reports whether the upload ends within some time.
func (u *upload) ended(within time.Duration) bool {
	select {
	case <-u.done:
		return true
	default:
	}
	if within == 0 {
		return false
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-u.done:
		return true
	case <-late.C:
		return false
	}
}

// reuseWait is for how long a response in full waits for the last word of its request:
// the server may have seen the end of it before the goroutine that wrote it goes on.
const reuseWait = 50 * time.Millisecond

// rewound returns a request to be sent in the place of r, of which nothing was written,
// or nil: its body is closed.
func rewound(r *http.Request) *http.Request {
	switch {
	case !hasBody(r):
		return r
	case r.GetBody == nil:
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	again := *r
	again.Body = body
	return &again
}
