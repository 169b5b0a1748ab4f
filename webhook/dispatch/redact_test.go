package dispatch

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/forbear-go/forbear/internal/label"
)

func TestRedact(t *testing.T) {
	in := `{"token":"abc123secret","error":"bad Bearer eyJhbGciOi.eyJzdWIi.sig for ann@example.com", "password": "hunter22"} key whsec_MfKQ9r8GKYqrTwjUPD8 and own-token-4711` + "\x00\x1b[31m"
	out := redact([]byte(in), "Bearer own-token-4711")
	for _, secret := range []string{"abc123secret", "eyJhbGciOi", "hunter22", "MfKQ9r8", "own-token-4711", "ann@example.com", "\x00", "\x1b"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q is left in %s", secret, out)
		}
	}
	if !strings.Contains(out, "bad") {
		t.Errorf("nothing is left: %s", out)
	}
	if n := len(redact([]byte(strings.Repeat("ü", 5000)), "")); n > maxResponse {
		t.Errorf("%d bytes kept", n)
	}
}

// What is kept of a response is text of a bounded size, without the credential
// that was sent.
func FuzzRedact(f *testing.F) {
	f.Add([]byte("denied: Bearer s3cr3t-token-value"), "Bearer s3cr3t-token-value")
	f.Add([]byte("\xff\x00{\"token\":\"x\"}"), "")
	f.Add([]byte(strings.Repeat("ü", 3000)), "Basic Zm9vOmJhcg==")
	f.Fuzz(func(t *testing.T, body []byte, sent string) {
		out := redact(body, sent)
		if len(out) > maxResponse || !utf8.ValidString(out) || strings.ContainsRune(out, 0) {
			t.Errorf("%d bytes: %q", len(out), out)
		}
		if _, token, ok := strings.Cut(sent, " "); ok && len(token) > len(redacted) && utf8.ValidString(token) && !strings.ContainsFunc(token, label.Control) &&
			strings.Contains(out, token) && !strings.Contains(redacted, token) {
			t.Errorf("%q is left in %q", token, out)
		}
	})
}
