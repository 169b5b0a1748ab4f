package idempotency

import (
	"errors"
	"fmt"
	"net/http"
)

// errNoKey is what readKey returns when the header is not there at all.
var errNoKey = errors.New("no idempotency key")

// readKey returns the key of a request, which is in one header line.
func readKey(h http.Header) (string, error) {
	lines := h.Values(Header)
	switch len(lines) {
	case 0:
		return "", errNoKey
	case 1:
	default:
		return "", fmt.Errorf("%w: %d header lines", ErrKey, len(lines))
	}
	return ParseKey(lines[0])
}
