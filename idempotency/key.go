package idempotency

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/uuid"
)

// Header is the request header that carries the key.
const Header = "Idempotency-Key"

// NewKey returns a fresh key, a UUID v4. Make one per logical operation and
// reuse it in every attempt.
func NewKey() string { return uuid.New() }

// ErrKey is what errors of [CheckKey] match.
var ErrKey = idemkey.Err

// CheckKey reports what is wrong with a key: it must have 1 to 64 characters
// all of them printable ASCII.
func CheckKey(key string) error { return idemkey.Check(key) }

// ParseKey reads a key as a header line has it: the bare characters, or a quoted
// string of RFC 9651 with parameters, which are ignored. Errors are [ErrKey], and
// do not repeat the value.
func ParseKey(line string) (string, error) { return idemkey.Parse(line) }

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
