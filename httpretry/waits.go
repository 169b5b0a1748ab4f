package httpretry

import (
	"net/http"
	"strings"
	"time"
)

// ParseRetryAfter returns the wait that a response's headers ask for; ok is
// false when none can be read. In this order, the first that can be read counts:
//
//   - Retry-After (RFC 9110 section 10.2.3) as seconds or as any of the three date
//     forms of section 5.6.7, and retry-after-ms; the larger of the two.
//   - x-ms-retry-after-ms (Azure) and x-amz-retry-after (AWS), in milliseconds.
//   - The end of a limit: RateLimit, RateLimit-Reset, X-RateLimit-Reset and
//     X-RateLimit-Reset-After. While RateLimit-Remaining, or X-RateLimit-Remaining, is
//     above zero it says nothing.
//   - The ends of several limits, x-ratelimit-reset-requests and -tokens (OpenAI) and
//     anthropic-ratelimit-requests-reset and its like: the latest of those with nothing
//     remaining, or else of those that do not say what remains.
//
// Dates are relative to the response's own Date where there is one. A value that cannot
// be read is ignored; of several, the largest counts; a date gone by asks for no wait; a
// number beyond all bounds saturates.
func ParseRetryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	return serverWait(h, now, 0, nil)
}

// longest keeps the largest of the waits that could be read.
type longest struct {
	wait time.Duration
	ok   bool
}

func (l *longest) add(wait time.Duration, readable bool) {
	if readable {
		l.wait, l.ok = max(l.wait, wait), true
	}
}

// serverWait is ParseRetryAfter for a response of which the status is known, under a
// policy that names headers of its own: these come after Retry-After, and before what
// vendors send. The end of a limit, which many servers send with every response, is a
// reason to wait with 429 and 503 alone, and with a status of 0, which is not known.
func serverWait(h http.Header, now time.Time, status int, named map[string]string) (time.Duration, bool) {
	limited := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 0
	var l longest
	for _, v := range h["Retry-After"] {
		l.add(retryAfter(v, h, now))
	}
	for _, v := range h["Retry-After-Ms"] {
		l.add(decimal(v, time.Millisecond))
	}
	if l.ok {
		return l.wait, true
	}
	if len(named) > 0 {
		if wait, ok := namedWait(h, now, limited, named); ok {
			return wait, true
		}
	}
	// aws-sdk-go-v2 aws/retry, azcore internal/shared.
	for _, name := range [...]string{"X-Ms-Retry-After-Ms", "X-Amz-Retry-After"} {
		for _, v := range h[name] {
			l.add(decimal(v, time.Millisecond))
		}
	}
	if l.ok || !limited {
		return l.wait, l.ok
	}
	if wait, ok := limitReset(h, now, status); ok {
		return wait, true
	}
	return limitResets(h, now)
}

// namedWait reads the headers that the policy names. One that tells when a limit is
// reset counts like those of vendors: when a limit is what the response is about, and
// not while the header with Remaining in the place of Reset is above zero.
func namedWait(h http.Header, now time.Time, limited bool, named map[string]string) (time.Duration, bool) {
	var l longest
	for name, form := range named {
		name = http.CanonicalHeaderKey(name)
		values := h[name]
		if len(values) > 0 && strings.Contains(name, "Reset") &&
			(!limited || quotaLeft(h[strings.Replace(name, "Reset", "Remaining", 1)])) {
			continue
		}
		for _, v := range values {
			l.add(readWait(form, v, h, now))
		}
	}
	return l.wait, l.ok
}

// advises reports whether h has any header that serverWait or saysStop reads, in one
// pass: most failures have none, and a lookup of each costs more.
func advises(h http.Header) bool {
	if len(h["Retry-After"]) > 0 {
		return true
	}
	for name := range h {
		switch name {
		case "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After",
			"Ratelimit", "Ratelimit-Reset", "X-Ratelimit-Reset", "X-Ratelimit-Reset-After",
			"X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens",
			"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Tokens-Reset",
			"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Reset",
			"X-Should-Retry", "Stripe-Should-Retry", "X-Envoy-Overloaded", HeaderNoRetry:
			return true
		}
	}
	return false
}
