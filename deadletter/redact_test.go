package deadletter_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/forbear-go/forbear/deadletter"
)

// What error texts hold of secrets and of people is not kept; what says why is.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "dial tcp 10.0.0.1:5432: connection refused", "dial tcp 10.0.0.1:5432: connection refused"},
		{"address", `Get "https://ann:hunter22@example.com/pay?card=1&x=planted": EOF`, `Get "https://[redacted]@example.com/pay?[redacted]": EOF`},
		{"password with a slash", "cannot open postgres://u:p/w?d@db/x", "cannot open postgres://[redacted]@db/x"},
		{"data source", "open app:hunter22@tcp(db:3306)/orders: refused", "open [redacted]@tcp(db:3306)/orders: refused"},
		{"path with a query", "GET /v1/pay?token_hint=planted&b=2 failed", "GET /v1/pay?[redacted] failed"},
		{"bearer", "denied: Bearer planted.token-0815 of tenant 7", "denied: [redacted] of tenant 7"},
		{"header", "sent Authorization: Digest user=planted, response=planted\nto db", "sent Authorization: [redacted]\nto db"},
		{"map of headers", "map[Authorization:[Bearer planted] X-A:[1]]", "map[Authorization:[redacted] X-A:[1]]"},
		{"other header", "X-Api-Key: planted refused", "X-Api-Key: [redacted] refused"},
		{"field", `{"client_secret":"plan \" ted","n":1}`, `{"client_secret":[redacted],"n":1}`},
		{"quoted field", `bad input "{\"password\":\"plan ted\",\"n\":1}"`, `bad input "{\"password\":[redacted],\"n\":1}"`},
		{"cut field", `{"password":"plan ted`, `{"password":[redacted]`},
		{"e-mail", "no account of Jörg.Planted@example.org here", "no account of [redacted] here"},
		{"card", "card 4111 1111 1111 1111 declined", "card [redacted] declined"},
		{"another number", "order 4111 1111 1111 1112 declined", "order 4111 1111 1111 1112 declined"},
		{"key", "-----BEGIN RSA PRIVATE KEY-----\nplanted", "[redacted]"},
		{"hidden by controls", "Bea\x00rer planted\x1b-0815-token", "[redacted]"},
		{"no UTF-8", "bad \xff byte", "bad ? byte"},
	} {
		if got := deadletter.Redact(c.text, 200); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := deadletter.Redact(strings.Repeat("ü", 500), 99); len(got) != 98 || !utf8.ValidString(got) {
		t.Errorf("%d bytes kept: %q", len(got), got)
	}
	if got := deadletter.Redact(strings.Repeat("ü", 50_000), 99); got != "(100000 bytes without a space)" {
		t.Errorf("got %q", got)
	}
	// A secret that the bound of the search cuts in half is not recognized.
	long := strings.Repeat("Bearer "+strings.Repeat("x", 1000)+" ", 3) + "https://ann:" + strings.Repeat("planted", 1000)
	if got := deadletter.Redact(long, 600); strings.Contains(got, "planted") {
		t.Errorf("half a secret is kept: %q", got)
	}
}

// Whatever surrounds a secret, it is not kept; what is kept is bounded text.
func FuzzRedact(f *testing.F) {
	f.Add("denied", "s3cr3tvalue", "for order 17", uint8(0), 100)
	f.Add(`{"a":"b`, "hunter2222", `","c":1}`, uint8(4), 2048)
	f.Add("\xff\x00\"", "abcdefgh1", "\x1b[31m", uint8(2), 30)
	f.Fuzz(func(t *testing.T, before, secret, after string, carrier uint8, limit int) {
		secret = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, secret)
		limit = 1 + (limit&0x7fffffff)%5000
		carriers := []string{
			"Bearer " + secret, "Authorization: Basic " + secret, "password=" + secret, "https://u:" + secret + "@host/p", `"token":"` + secret + `"`,
			"https://host/p?q=" + secret, "X-Api-Key: " + secret, secret + "@example.com", "db:" + secret + "@tcp(h)", `\"client_secret\":\"` + secret + `\"`,
		}
		got := deadletter.Redact(before+" "+carriers[int(carrier)%len(carriers)]+" "+after, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\x7f") {
			t.Errorf("%d bytes of %d: %q", len(got), limit, got)
		}
		if len(secret) >= 8 && !strings.Contains(before+after, secret[:8]) && strings.Contains(got, secret) {
			t.Errorf("%q is left in %q", secret, got)
		}
	})
}
