package sqlstore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
)

// What is sealed is opened with its key, refused without, and told from what was written
// before there was one.
func TestSealedIsTold(t *testing.T) {
	old, current := NewKey("01ab23cd"), NewKey("k2")
	ring := func(keys ...Key) *DB {
		t.Helper()
		c, err := NewCipher(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return &DB{cipher: c}
	}
	sealed, err := ring(old).seal("c", []byte("plain"))
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*DB{"none": {}, "another": ring(current)} {
		if got, err := db.unseal("c", sealed); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "01ab23cd") {
			t.Errorf("with %s key: %q, %v", name, got, err)
		}
	}
	for name, db := range map[string]*DB{"its key": ring(old), "both": ring(current, old)} {
		if got, err := db.unseal("c", sealed); string(got) != "plain" || err != nil {
			t.Errorf("with %s: %q, %v", name, got, err)
		}
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	if got, err := ring(old).unseal("c", changed); err == nil || errors.Is(err, ErrKey) {
		t.Errorf("changed: %q, %v", got, err)
	}
	for _, plain := range []string{"", "{}", `{"order":4711,"of":"` + strings.Repeat("x", 300) + `"}`, "\x08", "\x08 1ab23cd" + strings.Repeat("x", 40), strings.Repeat("~", 400), "\xff\x00\x01"} {
		for name, db := range map[string]*DB{"none": {}, "one": ring(old)} {
			if got, err := db.unseal("c", []byte(plain)); string(got) != plain || err != nil {
				t.Errorf("%q with %s: %q, %v", plain, name, got, err)
			}
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 32), "a b", "a\n", "\xff"} {
		if _, err := NewCipher(NewKey(id)); err == nil {
			t.Errorf("the id %q is taken", id)
		}
	}
}

// A receiver's text that looks as if it were sealed is none.
func TestResponseLooksSealed(t *testing.T) {
	db := &DB{}
	var row attemptRow
	if err := db.sealAttempt(&row, &deadletter.Attempt{Response: "sealed:AAAA"}); err != nil {
		t.Fatal(err)
	}
	if got, err := db.unsealText(attemptCell("response", 0, 0), *row.Response); err != nil || strings.TrimSpace(string(got)) != "sealed:AAAA" {
		t.Errorf("it comes back as %q, %v", got, err)
	}
}
