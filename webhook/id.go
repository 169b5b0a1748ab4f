package webhook

import (
	"crypto/rand"
	"encoding/base32"
	"time"
)

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns a random id that sorts by the time of its making, which keeps
// the indexes of a busy table together: "msg_" and 26 characters.
func NewID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[6:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	return prefix + "_" + crockford.EncodeToString(b[:])
}
