package database

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/sqlstore"
)

// The environment names the database of all commands, and a flag another one.
func TestFlag(t *testing.T) {
	for _, tt := range []struct {
		env  string
		args []string
		want string
	}{
		{"", nil, Default},
		{"postgres://from-environment/x", nil, "postgres://from-environment/x"},
		{"postgres://from-environment/x", []string{"--database", "mine.db"}, "mine.db"},
	} {
		t.Setenv("FORBEAR_DATABASE", tt.env)
		f := flag.NewFlagSet("", flag.ContinueOnError)
		var got string
		Flag(f, &got, Usage)
		if err := f.Parse(tt.args); err != nil || got != tt.want {
			t.Errorf("%q and %v: got %q, %v, want %q", tt.env, tt.args, got, err, tt.want)
		}
	}
}

// What is sealed under a key file is opened under the same contents only.
func TestCipher(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if c, err := Cipher(""); c != nil || err != nil {
		t.Errorf("without a file: %v, %v", c, err)
	}
	if _, err := Cipher(write("short")); err == nil || !strings.Contains(err.Error(), "at least 32 bytes") {
		t.Errorf("a short key: %v", err)
	}
	cipher, err := Cipher(write(strings.Repeat("k", minKey)))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := cipher.Seal([]byte("payload"))
	if err != nil || bytes.Contains(sealed, []byte("payload")) {
		t.Fatalf("sealed as %q, %v", sealed, err)
	}
	if again, err := Cipher(write(strings.Repeat("k", minKey))); err != nil {
		t.Error(err)
	} else if got, err := again.Open(sealed); err != nil || string(got) != "payload" {
		t.Errorf("opened as %q, %v", got, err)
	}
	if other, err := Cipher(write(strings.Repeat("x", minKey))); err != nil {
		t.Error(err)
	} else if got, err := other.Open(sealed); err == nil {
		t.Errorf("another key opens it as %q", got)
	}
}

// The first key encrypts and all decrypt; the flag replaces what the environment says,
// where files are listed as in PATH.
func TestKeyFlag(t *testing.T) {
	write := func(letter string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(strings.Repeat(letter, minKey)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a"), write("b")
	t.Setenv("FORBEAR_ENCRYPTION_KEY_FILE", a+string(filepath.ListSeparator)+b)
	keys := func(args ...string) *KeyFiles {
		t.Helper()
		f := flag.NewFlagSet("", flag.ContinueOnError)
		k := &KeyFiles{}
		KeyFlag(f, k, "")
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, tt := range []struct {
		name           string
		by, under, not *KeyFiles
	}{
		{"environment", keys(), keys("--encryption-key-file", a), keys("--encryption-key-file", b)},
		{"flags", keys("--encryption-key-file", b, "--encryption-key-file", a), keys("--encryption-key-file", b), keys("--encryption-key-file", a)},
	} {
		var ciphers [3]sqlstore.Cipher
		for i, k := range []*KeyFiles{tt.by, tt.under, tt.not} {
			var err error
			if ciphers[i], err = k.Cipher(); err != nil {
				t.Fatal(err)
			}
		}
		sealed, err := ciphers[0].Seal([]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ciphers[1].Open(sealed); err != nil {
			t.Errorf("%s: the first key: %v", tt.name, err)
		}
		if _, err := ciphers[2].Open(sealed); !errors.Is(err, sqlstore.ErrKey) {
			t.Errorf("%s: another key: %v", tt.name, err)
		}
	}
	if got := keys().String(); got != a+string(filepath.ListSeparator)+b {
		t.Errorf("shown as %q", got)
	}
}
