package webhook

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestMessagesAreChecked(t *testing.T) {
	ok := func() Message { return Message{Endpoints: []string{"a"}, Body: []byte("{}")} }
	for _, c := range []struct {
		name string
		edit func(*Message)
	}{
		{"no endpoint", func(m *Message) { m.Endpoints = nil }},
		{"id with a space", func(m *Message) { m.ID = "a b" }},
		{"id with a line break", func(m *Message) { m.ID = "a\r\nX: 1" }},
		{"long key", func(m *Message) { m.IdempotencyKey = strings.Repeat("k", 65) }},
		{"large body", func(m *Message) { m.Body = make([]byte, MaxPayload+1) }},
		{"authorization", func(m *Message) { m.Headers = []Header{{Name: "authorization", Value: "x"}} }},
		{"signature", func(m *Message) { m.Headers = []Header{{Name: "Webhook-Signature", Value: "x"}} }},
		{"header with a line break", func(m *Message) { m.Headers = []Header{{Name: "X-A", Value: "1\r\nX-B: 2"}} }},
		{"header name", func(m *Message) { m.Headers = []Header{{Name: "X A", Value: "1"}} }},
		{"content type", func(m *Message) { m.ContentType = "a\nb" }},
		{"a control character of C1", func(m *Message) { m.Type = "a\u0085b" }},
		{"the other escape", func(m *Message) { m.Key = "a\u009bb" }},
		{"a turn of direction", func(m *Message) { m.Subject = "a\u202eb" }},
		{"an isolate", func(m *Message) { m.Subject = "a\u2066b" }},
		{"a mark of direction", func(m *Message) { m.Headers = []Header{{Name: "X-A", Value: "\u200f"}} }},
		{"the Arabic one", func(m *Message) { m.CorrelationID = "\u061c" }},
		{"a correlation id as a header", func(m *Message) { m.Headers = []Header{{Name: "x-correlation-id", Value: "1"}} }},
		{"an attribute of the event as a header", func(m *Message) { m.Headers = []Header{{Name: "ce-id", Value: "1"}} }},
		{"a source with a space", func(m *Message) { m.Source = "my shop" }},
		{"a source that ends in a %", func(m *Message) { m.Source = "/shop%" }},
		{"a source beyond ASCII", func(m *Message) { m.Source = "/café" }},
		{"a source with two fragments", func(m *Message) { m.Source = "/a#b#c" }},
		{"a source that begins with a colon", func(m *Message) { m.Source = ":shop" }},
		{"due in the year 9999", func(m *Message) { m.Created, m.NotBefore = time.Now(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"due in 101 years", func(m *Message) { m.Created = time.Now(); m.NotBefore = m.Created.AddDate(101, 0, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ok()
			if c.edit(&m); !errors.Is(m.check(MaxPayload), ErrInvalid) {
				t.Errorf("accepted: %+v", m)
			}
		})
	}
	m := ok()
	for _, source := range []string{"", "/shop", "urn:forbear", "https://example.com/shop?a=1#b", "mailto:a@example.com", "shop", "/caf%C3%A9", "//host/x", "1-555-123-4567"} {
		m.Created = time.Now()
		m.Source, m.Subject, m.NotBefore = source, "Ünïcode 😀\u200d", m.Created.AddDate(99, 0, 0)
		if err := m.check(MaxPayload); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	m = ok()
	m.ID = strings.Repeat("i", 128)
	if k := m.SentKey(); len(k) != 64 || k != m.SentKey() {
		t.Errorf("key of a long id is %q", k)
	}
}

// A message that is accepted becomes a request whose headers are its own and
// cannot start a line of their own, in every format.
func FuzzMessage(f *testing.F) {
	f.Add("m1", "order.made", "/shop", "a\"b%ü", "k", "text/plain", "X-A", "1", []byte("{}"))
	f.Add("a b", "\r\nX: 1", "", "", "", "a\nb", "webhook-id", "\n", []byte{0})
	f.Fuzz(func(t *testing.T, id, kind, source, subject, key, contentType, name, value string, body []byte) {
		m := Message{ID: id, Endpoints: []string{"a"}, Type: kind, Source: source, Subject: subject, Key: key, ContentType: contentType, Headers: []Header{{Name: name, Value: value}}, Body: body}
		if m.check(MaxPayload) != nil {
			return
		}
		for _, format := range []Format{FormatRaw, FormatStructured, FormatBinary} {
			h := http.Header{}
			if _, err := m.Encode(format, h); err != nil {
				t.Fatalf("accepted, and not encoded as %q: %v", format, err)
			}
			for k, values := range h {
				for _, v := range values {
					if !token(k) || strings.ContainsAny(v, "\r\n\x00") {
						t.Errorf("%q: header %q is %q", format, k, v)
					}
				}
			}
		}
		if k := m.SentKey(); k != "" && len(k) > 64 {
			t.Errorf("key %q", k)
		}
	})
}

// The outbox checks bodies against the limit that its serve has.
func TestOutboxBatchChecksPayloads(t *testing.T) {
	m := Message{Endpoints: []string{"a"}, Body: make([]byte, DefaultMaxPayload+1)}
	if _, err := NewOutboxBatch(t.Context(), []Message{m}, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("by default: %v", err)
	}
	if _, err := NewOutboxBatch(t.Context(), []Message{m}, MaxPayload); err != nil {
		t.Errorf("with a limit of its own: %v", err)
	}
}
