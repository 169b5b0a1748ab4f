package idempotency

import "net/http"

// Disposition is what becomes of a run.
type Disposition uint8

const (
	// Keep stores the response for all duplicates.
	Keep Disposition = iota
	// Retry releases the key: the next attempt runs.
	Retry
	// Hold holds the key: it may have happened.
	Hold
)

// String names the disposition.
func (d Disposition) String() string {
	switch d {
	case Keep:
		return "keep"
	case Hold:
		return "hold"
	default:
		return "retry"
	}
}

// DefaultDisposition keeps 2xx, 3xx and final 4xx, and releases what clients must or
// may retry: 401, 403, 408, 409, 421, 425, 429 and every 5xx.
func DefaultDisposition(status int) Disposition {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return Retry
	}
	if status < 200 || status >= 500 {
		return Retry
	}
	return Keep
}
