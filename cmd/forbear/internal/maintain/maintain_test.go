package maintain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// keyFile makes a key file.
func keyFile(t *testing.T, letter string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(strings.Repeat(letter, 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withMessages makes a database in which n messages wait, and closes it.
func withMessages(t *testing.T, n int, keys ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "forbear.db")
	c, err := database.Cipher(keys...)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), path, sqlstore.WithCipher(c))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Webhooks().PutApplication(t.Context(), webhook.Application{ID: "acme", Secrets: []string{"planted"}}); err != nil {
		t.Fatal(err)
	}
	msgs := make([]webhook.Message, n)
	for i := range msgs {
		msgs[i] = webhook.Message{ID: webhook.NewID("msg"), Endpoints: []string{"a"}, Body: []byte("planted")}
	}
	if _, err := db.Webhooks().Accept(t.Context(), msgs, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// The exit code says when the old key can go, and the errors which key is missing.
func TestReencrypt(t *testing.T) {
	old, current := keyFile(t, "o"), keyFile(t, "n")
	db := withMessages(t, 150, old)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no key", []string{"reencrypt"}, cli.ExitUsage, "no encryption key is given: name its file with --encryption-key-file"},
		{"the new key alone", []string{"reencrypt", "--encryption-key-file", current}, cli.ExitUsage, "give it with --encryption-key-file, after the first key"},
		{"count before", []string{"reencrypt", "--check", "--encryption-key-file", current}, cli.ExitFound, "messages             key 426277fe   150"},
		{"rewrite", []string{"reencrypt", "--encryption-key-file", current, "--encryption-key-file", old}, cli.ExitOK, "151 rows rewritten\napplications         key "},
		{"again", []string{"reencrypt", "--encryption-key-file", current, "--encryption-key-file", old}, cli.ExitOK, "0 rows rewritten"},
		{"count after", []string{"--check", "reencrypt", "--encryption-key-file", current}, cli.ExitOK, "150\n"},
		{"no verb", nil, cli.ExitUsage, "which verb? want backup, reencrypt or shrink"},
		{"an operand", []string{"reencrypt", "now"}, cli.ExitUsage, `unexpected argument "now"`},
		{"no such file", []string{"reencrypt", "--database", db + "x"}, cli.ExitUsage, "does not exist"},
		{"one key twice", []string{"reencrypt", "--encryption-key-file", old, "--encryption-key-file", old}, cli.ExitUsage, "has the same key as another of the files"},
	} {
		got := clitest.Run(t, Command(), "", append([]string{"--database", db}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.Out+got.Errors, tt.want) {
			t.Errorf("%s: %+v, want %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
}
