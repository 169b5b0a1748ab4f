package forrst

import (
	"cmp"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/httpretry"
)

// time turns strategy and wait into a hint. after is the extension's when given
// and the default's otherwise; floor is what the rest of the message asks for,
// when asked is set. A wait that the server gave is a floor, never a fixed
// interval: a spread lies above it.
func (a *Advice) time(after time.Duration, given bool, floor time.Duration, asked bool) {
	h := &a.Failure.Hint
	h.Floor = floor
	switch {
	case given:
		h.Floor = max(floor, after)
	case a.Strategy == Fixed && !asked:
		after = cmp.Or(after, (&forbear.Policy{}).WithDefaults().Backoff.Base) // when nothing better is known
		h.Floor = after
	}
	switch a.Strategy {
	case Exponential:
		h.Base = after
	default:
		h.NoBackoff = true
	}
	// Not a tenth, as elsewhere: where the backoff is dropped, this is all the
	// jitter that there is.
	h.Spread = hint.Spread(h.Floor, 1)
}

// serverWait returns the longest wait that the message asks for beside the
// retry extension: Retry-After, details.retry_after, and what the rate-limit
// and maintenance extensions say.
func (r *Response) serverWait(x Message) (floor time.Duration, ok bool) {
	most := func(d time.Duration, readable bool) {
		if readable {
			floor, ok = max(floor, d), true
		}
	}
	limited := false
	for i := range r.Errors {
		limited = limited || r.Errors[i].Code == "RATE_LIMITED"
	}
	most(headerWait(x, limited))
	for i := range r.Errors {
		if m, isObject := members(r.Errors[i].Details); isObject {
			most(readDuration(m["retry_after"]))
		}
	}
	for _, e := range r.Extensions {
		m, isObject := members(e.Data)
		switch {
		case !isObject:
		case limited && is(e.URN, "rate-limit"):
			most(readDuration(m["resets_in"]))
		case is(e.URN, "maintenance"):
			most(readDuration(m["retry_after"]))
		}
	}
	return floor, ok
}

// headerWait returns the wait of the HTTP headers. Those of rate limits come
// with every response of some servers, and count for a limited call alone.
func headerWait(x Message, limited bool) (time.Duration, bool) {
	h := x.Header
	if !limited {
		h = http.Header{}
		for _, name := range [...]string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "Date"} {
			// RATE_LIMITED alone makes these headers a demand.
			if v := x.Header.Values(name); len(v) > 0 {
				h[name] = v
			}
		}
	}
	return httpretry.ParseRetryAfter(h, x.Now)
}
