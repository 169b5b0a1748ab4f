package deliverycheck

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
)

// Clock numbers what happens, so that of two events it is known which was
// first. The zero value is ready. It is safe for concurrent use. Wall-clock time
// would not do: two events in one process can have the same time, and the order
// rules need to know which came first.
type Clock struct{ n atomic.Int64 }

// Tick returns the next number; the first is 1.
func (c *Clock) Tick() int64 { return c.n.Add(1) }

// Endpoint is a receiver, as far as the judgement has to know it. It is a copy of a
// few facts and not webhook.Endpoint: a check that shared the product's types would
// share its mistakes.
type Endpoint struct {
	ID      string
	Ordered bool
	// Binary endpoints get CloudEvents in binary mode, which show type, source,
	// subject and key as headers.
	Binary bool
}

// Identity is what a message is known by. The endpoint is part of it (rule 1): an
// implementation that keys on the id alone loses the message of the second endpoint.
type Identity struct{ Endpoint, ID string }

func (i Identity) String() string { return i.Endpoint + "/" + i.ID }

// Header is one header line of a message. It matches the API's JSON, in which
// headers are a list: an object would lose their order.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Content is what makes two offers of one identity the same message or rivals. The
// correlation id and not_before are left out on purpose: a repetition may change
// them and is a duplicate still.
type Content struct {
	Body, Type, Source, Subject, Key, IdempotencyKey, ContentType string

	Headers []Header
}

// Sum is a digest. Contents are compared by it: a report of a long run holds tens
// of thousands. Ninety-six bits are enough: a collision within a run is out of the
// question, and the ids of a report stay readable.
type Sum [12]byte

func (s Sum) String() string { return hex.EncodeToString(s[:4]) }

// digest is the digest of texts in their order. Plain concatenation would make
// "ab","c" and "a","bc" the same content.
func digest(parts ...string) (s Sum) {
	text, _ := json.Marshal(parts) // keeps the parts apart
	sum := sha256.Sum256(text)
	copy(s[:], sum[:])
	return s
}

// Sum returns the digest of the whole content.
func (c *Content) Sum() Sum {
	parts := []string{hex.EncodeToString([]byte(c.Body)), c.Type, c.Source, c.Subject, c.Key, c.IdempotencyKey, c.ContentType}
	for _, h := range c.Headers {
		parts = append(parts, h.Name, h.Value)
	}
	return digest(parts...)
}

// The headers that messages carry. A message has each of them once at most.
var messageHeaders = []string{"X-Check-A", "X-Check-B"}

// Wire returns the digest of what the endpoint sees of the content under an id.
// Two contents may look the same there: type, for one, is not sent to all. It
// repeats the documented defaults, such as the content type, in its own words. That
// is the point: a changed default shows as a violation.
func (c *Content) Wire(e Endpoint, id string) Sum {
	parts := []string{hex.EncodeToString([]byte(c.Body)), cmp.Or(c.ContentType, "application/json"), cmp.Or(c.IdempotencyKey, id)}
	for _, name := range messageHeaders {
		value := ""
		for _, h := range c.Headers {
			if h.Name == name {
				value = h.Value
			}
		}
		parts = append(parts, value)
	}
	if e.Binary {
		parts = append(parts, id, cmp.Or(c.Type, "forbear.message"), cmp.Or(c.Source, "urn:forbear"), c.Subject, c.Key)
	}
	return digest(parts...)
}

// received is Wire's counterpart, of a request. It must list the same parts in the
// same order as Wire, or nothing that arrives matches an offer.
func received(e Endpoint, h http.Header, body []byte) Sum {
	joined := func(name string) string { return strings.Join(h.Values(name), "\n") }
	parts := []string{hex.EncodeToString(body), joined("Content-Type"), joined("Idempotency-Key")}
	for _, name := range messageHeaders {
		parts = append(parts, joined(name))
	}
	if e.Binary {
		parts = append(parts, joined("Ce-Id"), joined("Ce-Type"), joined("Ce-Source"), joined("Ce-Subject"), joined("Ce-Partitionkey"))
	}
	return digest(parts...)
}

// clip shortens a body for a report. Bodies hold control characters on purpose, and
// a report is read in a terminal.
func clip(body string) string {
	const limit = 160
	printable := func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}
	if len(body) > limit {
		body = body[:limit] + "..."
	}
	return strings.Map(printable, body)
}
