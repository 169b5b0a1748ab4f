package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"
)

// attempts sends each attempt of a call once, below the retries.
type attempts struct {
	next       http.RoundTripper
	underlying *http.Transport // by whose rules next sends, or nil
	counted    bool            // in the record of the call
}

// RoundTrip implements [http.RoundTripper]. The attempts of a call follow one another,
// on the goroutine of its handler.
func (t attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.counted {
		if x := requestOf(r.Context()); x != nil {
			m := &x.meter
			m.attempts++
			m.wait += time.Since(m.began) - m.ended
			defer func() { m.ended = time.Since(m.began) }()
		}
	}
	if len(r.Header["Expect"]) > 0 && r.Body != nil && r.Body != http.NoBody {
		return sendExpecting(t.next, r)
	}
	return t.next.RoundTrip(r)
}

// Underlying serves the guard against re-sends.
func (t attempts) Underlying() *http.Transport { return t.underlying }

// CloseIdleConnections reaches the transport below.
func (t attempts) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// sendExpecting sends a request with "Expect: 100-continue" through next, and keeps its
// body unread when the dependency has responded without asking for it (RFC 9110 section
// 10.1.1). net/http's transport would send it all the same, to keep the connection; and
// the caller would be told to send the body, since its server writes 100 when someone
// begins to read.
func sendExpecting(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	e := &expectation{}
	e.moved.L = &e.mu
	own := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotFirstResponseByte: func() { e.set(&e.refused, true) },
		Got100Continue:       func() { e.set(&e.refused, false) },
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			e.set(&e.refused, false) // 103, say: the response is still to come
			return nil
		},
	}))
	own.Body = &expectedBody{ReadCloser: r.Body, e: e}
	if get := r.GetBody; get != nil {
		own.GetBody = func() (io.ReadCloser, error) {
			again, err := get()
			if err != nil {
				return nil, err
			}
			return &expectedBody{ReadCloser: again, e: e}, nil
		}
	}
	// The attempt ends with its response.
	context.AfterFunc(r.Context(), func() { e.set(&e.over, true) })
	return next.RoundTrip(own)
}

// expectation is what one attempt waits for.
type expectation struct {
	mu      sync.Mutex
	moved   sync.Cond
	refused bool // something has come, and it was no 1xx
	begun   bool // the body is on its way, and a response no longer says that it is not wanted
	over    bool // the attempt is
}

func (e *expectation) set(fact *bool, to bool) {
	e.mu.Lock()
	*fact = to
	e.mu.Unlock()
	e.moved.Broadcast()
}

// expectedBody is the request's.
type expectedBody struct {
	io.ReadCloser
	e      *expectation
	closed bool
}

// errNotAskedFor is the error of a Read of a body that the dependency does not want.
var errNotAskedFor = errors.New("the response came before the body was requested")

// Read holds what would send the body until the response is over: an error would end the
// connection, and the response with it.
func (b *expectedBody) Read(p []byte) (int, error) {
	e := b.e
	e.mu.Lock()
	for e.refused && !e.begun && !e.over && !b.closed {
		e.moved.Wait()
	}
	e.begun = e.begun || !e.refused
	begun := e.begun
	e.mu.Unlock()
	if !begun {
		return 0, errNotAskedFor
	}
	return b.ReadCloser.Read(p)
}

// Close implements [io.Closer].
func (b *expectedBody) Close() error {
	b.e.set(&b.closed, true)
	return b.ReadCloser.Close()
}
