package webhook

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is kept of an answer is text of a bounded size, without the credential
// that was sent.
func FuzzRedact(f *testing.F) {
	f.Add([]byte("denied: Bearer s3cr3t-token-value"), "Bearer s3cr3t-token-value")
	f.Add([]byte("\xff\x00{\"token\":\"x\"}"), "")
	f.Add([]byte(strings.Repeat("ü", 3000)), "Basic Zm9vOmJhcg==")
	f.Fuzz(func(t *testing.T, body []byte, sent string) {
		out := Redact(body, sent)
		if len(out) > MaxResponse || !utf8.ValidString(out) || strings.ContainsRune(out, 0) {
			t.Errorf("%d bytes: %q", len(out), out)
		}
		if _, token, ok := strings.Cut(sent, " "); ok && len(token) > len(redacted) && utf8.ValidString(token) && !strings.ContainsFunc(token, control) &&
			strings.Contains(out, token) && !strings.Contains(redacted, token) {
			t.Errorf("%q is left in %q", token, out)
		}
	})
}

// A message that is accepted becomes a request whose headers are its own and
// cannot start a line of their own, in every format.
func FuzzMessage(f *testing.F) {
	f.Add("m1", "order.made", "/shop", "a\"b%ü", "k", "text/plain", "X-A", "1", []byte("{}"))
	f.Add("a b", "\r\nX: 1", "", "", "", "a\nb", "webhook-id", "\n", []byte{0})
	f.Fuzz(func(t *testing.T, id, kind, source, subject, key, contentType, name, value string, body []byte) {
		m := Message{ID: id, Endpoints: []string{"a"}, Type: kind, Source: source, Subject: subject, Key: key, ContentType: contentType, Headers: []Header{{Name: name, Value: value}}, Body: body}
		if m.check() != nil {
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
