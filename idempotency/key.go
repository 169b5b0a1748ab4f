package idempotency

import (
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/uuid"
)

// Header is the request header that carries the key.
const Header = "Idempotency-Key"

// NewKey returns a fresh key, a UUID v4. Make one per logical operation and
// reuse it in every attempt.
func NewKey() string { return uuid.New() }

// ErrKey is what errors of [CheckKey] match.
var ErrKey = errors.New("invalid idempotency key")

// CheckKey reports what is wrong with a key: it must have 1 to 64 characters
// all of them printable ASCII.
func CheckKey(key string) error {
	switch n := len(key); {
	case n == 0:
		return fmt.Errorf("%w: empty", ErrKey)
	case n > layer.MaxKeyLen:
		return fmt.Errorf("%w: %d characters, at most %d (R-6)", ErrKey, n, layer.MaxKeyLen)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Errorf("%w: character %d is not printable ASCII", ErrKey, i+1)
		}
	}
	return nil
}
