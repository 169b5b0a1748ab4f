package gateway

import (
	"net/http"
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
			x.meter.attempts++
			x.meter.wait += time.Since(x.meter.ended)
			defer func() { x.meter.ended = time.Now() }()
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
