package webhook

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/layer"
)

// A message is identified by its endpoint and its id together, wherever it came
// from: the API, the outbox, a redrive. The same id at two endpoints is two
// messages. At one endpoint the first content counts: the same content again is
// a duplicate, and other content is refused with [ErrConflict], since one of
// the two would otherwise be dropped, or reach a receiver that takes it for the
// other.

// ErrConflict refuses a message whose id stands for other content at one of its
// endpoints.
var ErrConflict = errors.New("the id belongs to another message")

// SameContent reports whether o is the same message as m, given that their ids
// are equal: whether a receiver would be sent the same. When a message is due,
// when it was made and what correlates or traces it may differ from one offer to the
// next.
func (m *Message) SameContent(o *Message) bool {
	return m.Type == o.Type && m.Source == o.Source && m.Subject == o.Subject && m.Key == o.Key && m.SentKey() == o.SentKey() &&
		cmp.Or(m.ContentType, defaultContentType) == cmp.Or(o.ContentType, defaultContentType) &&
		slices.Equal(untraced(m.Headers), untraced(o.Headers)) && bytes.Equal(m.Body, o.Body)
}

// Dropped returns m as a store keeps it after it has dropped the body: a digest is in
// its place, so that [Message.SameContent] still distinguishes two such messages.
func (m *Message) Dropped() Message {
	sum := sha256.Sum256(m.Body)
	kept := *m
	kept.Body = sum[:]
	return kept
}

// Erased returns what a store keeps of m when it has been erased: its id, and a digest
// in the place of its body, by which the same message again is known. The body of m is
// that of [Message.Dropped].
func (m *Message) Erased() Message {
	text, _ := json.Marshal([]any{ // never fails
		m.Type, m.Source, m.Subject, m.Key, m.SentKey(), cmp.Or(m.ContentType, defaultContentType), untraced(m.Headers), m.Body,
	})
	sum := sha256.Sum256(text)
	return Message{ID: m.ID, CorrelationID: m.ID, Created: m.Created, Body: sum[:]}
}

// SentKey returns the Idempotency-Key of all attempts of a message: its own, without the
// quotes that it may have been written in, or its id, hashed when it is longer than R-6
// allows or would be read as another key, or as two. It depends on nothing else, so
// that it is the same in each attempt and in each process.
func (m *Message) SentKey() string {
	if k := m.IdempotencyKey; k != "" {
		if text := idemkey.Text(k); idemkey.Bare(text) {
			return text
		}
		return k
	}
	if k := m.ID; len(k) <= layer.MaxKeyLen && idemkey.Bare(k) {
		return k
	}
	sum := sha256.Sum256([]byte(m.ID))
	return hex.EncodeToString(sum[:])
}

// hashedID begins the ids that [Message.SentID] makes.
const hashedID = "msg_sha256_"

// SentID returns the webhook-id of all attempts of a message: its ID, or SHA-256 of
// it where the ID has a dot, which Standard Webhooks forbids since an attempt signs
// "id.timestamp.body". It depends on nothing else, so that it is the same in each
// attempt, in each process and after a redrive. An ID that looks like one of these is
// hashed as well: no two IDs of visible characters are sent as the same.
func (m *Message) SentID() string {
	if signable(m.ID) && !strings.HasPrefix(m.ID, hashedID) {
		return m.ID
	}
	sum := sha256.Sum256([]byte(m.ID))
	return hashedID + base64.RawURLEncoding.EncodeToString(sum[:])
}

// crockford is the alphabet of ids: its order is that of the numbers, and no two
// of its characters are mistaken for each other.
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
