package idempotency

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/forbear-go/forbear/internal/idemkey"
)

// errNoKey is what readKey returns when the header is not there at all.
var errNoKey = errors.New("no idempotency key")

// readKey returns the key of a request, which is in one header line, however its name is
// spelled.
func readKey(h http.Header) (string, error) {
	lines := idemkey.Lines(h)
	switch len(lines) {
	case 0:
		return "", errNoKey
	case 1:
	default:
		return "", fmt.Errorf("%w: %d header lines", ErrKey, len(lines))
	}
	return ParseKey(lines[0])
}
