package sqlstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/idempotency"
)

// The test vectors of c2sp.org/XAES-256-GCM, one for each value of CMAC's carry.
func TestXAES(t *testing.T) {
	for _, c := range []struct{ key, aad, sealed string }{
		{"01", "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{"03", "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		key, _ := hex.DecodeString(strings.Repeat(c.key, 32))
		m, err := newMaster(key)
		if err != nil {
			t.Fatal(err)
		}
		box, err := hex.DecodeString(c.sealed)
		if err != nil {
			t.Fatal(err)
		}
		box = append([]byte("ABCDEFGHIJKLMNOPQRSTUVWX"), box...)
		if plain, err := m.open(box, []byte(c.aad)); string(plain) != "XAES-256-GCM" || err != nil {
			t.Errorf("key %s: got %q, %v", c.key, plain, err)
		}
		again, err := m.seal(nil, []byte("XAES-256-GCM"), []byte(c.aad))
		if err != nil || len(again) != len(box) || bytes.Equal(again[:24], box[:24]) {
			t.Errorf("key %s: sealed %x, %v", c.key, again, err)
		}
		if plain, err := m.open(again, []byte(c.aad)); string(plain) != "XAES-256-GCM" || err != nil {
			t.Errorf("key %s: what it has sealed opens as %q, %v", c.key, plain, err)
		}
	}
}

// sealedBefore returns what versions that did not bind have sealed.
func sealedBefore(t *testing.T, k Key, plain string) []byte {
	t.Helper()
	m, err := newMaster(k.Secret)
	if err != nil {
		t.Fatal(err)
	}
	head := append([]byte{byte(len(k.ID))}, k.ID...)
	return m.before.Seal(head, nil, []byte(plain), head)
}

// What is sealed opens at its own place alone, and what an earlier version has sealed at
// any, until all is bound. From then on nothing else is taken.
func TestSealedIsBound(t *testing.T) {
	k := NewKey("01ab23cd")
	c, err := NewCipher(k)
	if err != nil {
		t.Fatal(err)
	}
	db := &DB{cipher: c}
	mine, other := bodyOf("a", 1), []cell{bodyOf("b", 1), bodyOf("a", 2), metaOf("a", 1), recordCell("body", idempotency.ID{Scope: "a", Key: "1"}), ""}
	sealed, err := db.seal(mine, []byte("plain"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := db.sealText(mine, []byte("plain"))
	if err != nil {
		t.Fatal(err)
	}
	before := sealedBefore(t, k, "plain")
	check := func(at cell, want string, refused error) {
		t.Helper()
		for name, open := range map[string]func() ([]byte, error){
			"bytes": func() ([]byte, error) { return db.unseal(at, sealed) },
			"text":  func() ([]byte, error) { return db.unsealText(at, text) },
		} {
			if got, err := open(); string(got) != want || (err == nil) != (want != "") || refused != nil && !errors.Is(err, refused) {
				t.Errorf("%s at %q: %q, %v", name, at, got, err)
			}
		}
	}
	for _, all := range []bool{false, true} {
		db.sealed.Store(all)
		check(mine, "plain", nil)
		for _, at := range other {
			check(at, "", nil)
		}
		for name, box := range map[string][]byte{"before": before, "plain": []byte("plain")} {
			if got, err := db.unseal(mine, box); all && !errors.Is(err, ErrUnsealed) || !all && (string(got) != "plain" || err != nil) {
				t.Errorf("%s, all sealed %v: %q, %v", name, all, got, err)
			}
		}
		if got, err := db.unsealText(mine, "plain"); all && !errors.Is(err, ErrUnsealed) || !all && (string(got) != "plain" || err != nil) {
			t.Errorf("text, all sealed %v: %q, %v", all, got, err)
		}
		if got, err := db.unseal(mine, nil); len(got) != 0 || err != nil {
			t.Errorf("nothing: %q, %v", got, err)
		}
	}
	keyless := &DB{}
	keyless.sealed.Store(true)
	if _, err := keyless.seal(mine, []byte("plain")); !errors.Is(err, ErrKey) {
		t.Errorf("a process without the key writes in the clear: %v", err)
	}
}
