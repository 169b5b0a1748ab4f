package webhook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/deadletter"
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

// policyVersion names the policy that a letter was decided under: the version
// of its endpoint and a digest.
func policyVersion(e *Endpoint) string {
	text, err := json.Marshal(e.Policy)
	if err != nil {
		return "v" + strconv.FormatInt(e.Version, 10)
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("v%d-%s", e.Version, hex.EncodeToString(sum[:4]))
}

// describe says in one line why a letter was written, without anything of the
// payload or of the answers: it goes into lists and alerts.
func describe(l *deadletter.Letter) string {
	s := l.Reason
	if l.ErrorType != "" {
		s += " (" + l.ErrorType + ")"
	}
	s += " after " + count(l.Attempts, "attempt")
	if l.Postponed > 0 {
		s += " and " + count(l.Postponed, "postponement")
	}
	return clip(s, deadletter.MaxDescription)
}

// count returns "1 attempt", or "5 attempts".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.Itoa(n) + " " + of + "s"
}
