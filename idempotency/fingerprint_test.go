package idempotency_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/idempotency"
)

// plainDigest is what a digest must be, written down plainly: stored records
// outlive the program.
func plainDigest(parts ...string) string {
	var text []byte
	for _, p := range parts {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestDigestsOfAllSizes(t *testing.T) {
	for _, n := range []int{0, 1, 31, 400, 440, 460, 480, 495, 496, 497, 504, 512, 513, 2000, 100_000} {
		body := strings.Repeat("b", n)
		if got, want := idempotency.Digest("a", body), plainDigest("a", body); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
		for media, as := range map[string]string{
			"": "", "application/json": "application/json", "Application/JSON; charset=utf-8": "application/json", "text/plain ": "text/plain", "A/b/c": "a/b/c", "a/b/c": "a/b/c",
		} {
			r := httptest.NewRequest("POST", "/p%20q?b=2&a=1&b=1", nil)
			r.Header.Set("Content-Type", media)
			if got, want := idempotency.Fingerprint(r, []byte(body)), plainDigest("1", "POST", "/p%20q", "a=1&b=2&b=1", as, body); got != want {
				t.Errorf("%d bytes of %q: %s, want %s", n, media, got, want)
			}
		}
	}
}
