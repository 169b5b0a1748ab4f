package forbear

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// newID returns a random correlation id of 32 hex digits, in one allocation.
// math/rand/v2's own source is seeded by the system and hard to guess; an id is
// no secret.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	var digits [32]byte
	hex.Encode(digits[:], b[:])
	return string(digits[:])
}
