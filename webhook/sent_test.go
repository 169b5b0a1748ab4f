package webhook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/idemkey"
)

// One signed attempt must not verify as a message of another id, time and body. The
// text that is signed, "id.timestamp.body", has one reading only where the id has no dot.
func TestSignedTextHasOneReading(t *testing.T) {
	secret := NewSecret()
	var s Signer
	if err := s.Add(secret); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(4 * time.Hour)

	// A body that begins as a timestamp: the same text with an id that has dots.
	body := fmt.Sprintf("%d.5", later.Unix())
	sig := s.Sign("msg_1", now, []byte(body))
	if err := Verify(secret, "msg_1", fmt.Sprint(now.Unix()), sig, []byte(body), now); err != nil {
		t.Errorf("the message itself: %v", err)
	}
	if err := Verify(secret, fmt.Sprintf("msg_1.%d", now.Unix()), fmt.Sprint(later.Unix()), sig, []byte("5"), later); !errors.Is(err, ErrSignature) {
		t.Errorf("the same text, divided elsewhere, verifies: %v", err)
	}
	for _, id := range []string{"", "a.b", ".", "x.1800000000.{", "a b", "a\nb", "ü", strings.Repeat("i", 129)} {
		if sig := s.Sign(id, now, nil); sig != "" {
			t.Errorf("%q is signed: %s", id, sig)
		}
	}
	for _, stamp := range []string{"+1800000000", "-1", "", " 1800000000", "1_800_000_000", "0x6b49d200"} {
		if err := Verify(secret, "msg_1", stamp, sig, []byte(body), now); !errors.Is(err, ErrSignature) {
			t.Errorf("timestamp %q: got %v", stamp, err)
		}
	}
}

// What goes out is the id itself where it can be signed, and otherwise a digest that no
// other id has.
func TestSentIDs(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{
		"msg_p5jXN8AQM9LWM0D4loKWxJek", "order-4711", "a/b?c#d%2F", `{"a":1}`, strings.Repeat("i", 128),
		"com.example.order.1", "a.b", "a.c", "..", strings.Repeat(".", 128), "",
		(&Message{ID: "a.b"}).SentID(), (&Message{ID: (&Message{ID: "a.b"}).SentID()}).SentID(), "msg_sha256_",
	} {
		m := Message{ID: id}
		sent := m.SentID()
		if again := (&Message{ID: id, Body: []byte("x"), Endpoints: []string{"e"}}).SentID(); again != sent {
			t.Errorf("%q goes out as %s and as %s", id, sent, again)
		}
		if !signable(sent) {
			t.Errorf("%q goes out as %q, which cannot be signed", id, sent)
		}
		if own := id != "" && !strings.Contains(id, ".") && !strings.HasPrefix(id, "msg_sha256_"); own != (sent == id) {
			t.Errorf("%q goes out as %q", id, sent)
		}
		if other, taken := seen[sent]; taken {
			t.Errorf("%q and %q both go out as %s", id, other, sent)
		}
		seen[sent] = id
	}
	// The digest is written down in the guide: receivers may look ids up by it.
	if got, want := (&Message{ID: "a.b"}).SentID(), "msg_sha256_LnM23I66h-9HLfVow1SCq_JXXcPl6sDFxiuP-urCyTQ"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A key has two spellings, bare and in quotes, and receivers read both as one. What goes
// out is bare, and no two messages' keys are read as the same, or one as two.
func TestSentKeys(t *testing.T) {
	for _, c := range []struct {
		name, key, id, want string
	}{
		{"bare", "k1", "m", "k1"},
		{"in quotes", `"k1"`, "m", "k1"},
		{"with parameters", `"k1";a=1`, "m", "k1"},
		{"the id", "", "m", "m"},
		{"an id with dots", "", "a.b", "a.b"},
		{"an id in quotes", "", `"m"`, ""}, // a digest: it is not the key of the message m
		{"an id of two keys", "", "a,b", ""},
		{"a long id", "", strings.Repeat("i", 65), ""},
	} {
		m := Message{ID: c.id, IdempotencyKey: c.key}
		got := m.SentKey()
		if digest := len(got) == 64 && strings.Trim(got, "0123456789abcdef") == ""; got != c.want && (c.want != "" || !digest) {
			t.Errorf("%s: got %q", c.name, got)
		}
		if text, err := idemkey.Parse(got); err != nil || text != got {
			t.Errorf("%s: a receiver reads %q, %v", c.name, text, err)
		}
		if again := (&Message{ID: c.id, IdempotencyKey: got}).SentKey(); again != got {
			t.Errorf("%s: a redrive sends %q in place of %q", c.name, again, got)
		}
	}
	quoted, bare := Message{ID: "m", IdempotencyKey: `"k1"`}, Message{ID: "m", IdempotencyKey: "k1"}
	if !quoted.SameContent(&bare) {
		t.Error("a message whose key is written in quotes is another one")
	}
	for key, ok := range map[string]bool{
		`"` + strings.Repeat("k", 64) + `"`: true, `"` + strings.Repeat("k", 65) + `"`: false, `""`: false, "\"k\";\r\nX: 1": false, "\"a,b\"\n": false,
		`"k";` + strings.Repeat("a", 256): false,
	} {
		m := Message{ID: "m", Endpoints: []string{"a"}, IdempotencyKey: key, Body: []byte("{}")}
		if err := m.check(MaxPayload); (err == nil) != ok {
			t.Errorf("%.80q: got %v", key, err)
		}
	}
}
