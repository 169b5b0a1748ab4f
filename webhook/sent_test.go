package webhook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
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
	sig, err := s.Sign("msg_1", now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(secret, "msg_1", fmt.Sprint(now.Unix()), sig, []byte(body), now); err != nil {
		t.Errorf("the message itself: %v", err)
	}
	if err := Verify(secret, fmt.Sprintf("msg_1.%d", now.Unix()), fmt.Sprint(later.Unix()), sig, []byte("5"), later); !errors.Is(err, ErrSignature) {
		t.Errorf("the same text, divided elsewhere, verifies: %v", err)
	}
	for _, id := range []string{"", "a.b", ".", "x.1800000000.{", "a b", "a\nb", "ü", strings.Repeat("i", 129)} {
		if sig, err := s.Sign(id, now, nil); sig != "" || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is signed: %s, %v", id, sig, err)
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
