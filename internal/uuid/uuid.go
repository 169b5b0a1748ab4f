// Package uuid makes random identifiers of RFC 9562 version 4.
package uuid

import (
	"crypto/rand"
	"encoding/hex"
)

// New returns a UUID v4 in its usual form of 36 characters. It is safe for
// concurrent use and needs no seed. The bits come from crypto/rand, because an
// idempotency key that can be guessed lets a stranger replay a response.
//
// The 122 random bits make a collision no concern of any caller.
func New() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
