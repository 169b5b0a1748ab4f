//forbear:plain nothing runs at once
package maintain

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// A file of before gives its free space back, and goes on doing so.
func TestShrink(t *testing.T) {
	path := withMessages(t, 3000)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	raw.SetMaxOpenConns(1)
	defer func() { _ = raw.Close() }()
	for _, text := range []string{"PRAGMA auto_vacuum = 0", "VACUUM", "DELETE FROM forbear_deliveries", "DELETE FROM forbear_messages"} {
		if _, err := raw.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	mode := func() (n int) {
		t.Helper()
		raw, err := sql.Open("sqlite", path) // a connection keeps what it has read
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		if err := raw.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if n := mode(); n != 0 {
		t.Fatalf("auto_vacuum is %d", n)
	}
	got := clitest.Run(t, Command(), "", "shrink", "--database", path)
	if got.Code != cli.ExitOK || size() > before/2 || mode() != 2 || !strings.Contains(got.Out, "bytes before") {
		t.Errorf("%+v: %d bytes of %d, auto_vacuum %d", got, size(), before, mode())
	}
}

// A backup is a new file, its owner's alone, and nothing is overwritten.
func TestBackup(t *testing.T) {
	path, to := withMessages(t, 10), filepath.Join(t.TempDir(), "copy.db")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"a copy", []string{"backup", to, "--database", path}, cli.ExitOK, ""},
		{"again", []string{"backup", to, "--database", path}, cli.ExitUsage, "exists"},
		{"no folder", []string{"backup", to + "/x", "--database", path}, cli.ExitUsage, "not a directory"},
		{"no name", []string{"backup", "--database", path}, cli.ExitUsage, "needs the name of one new file"},
		{"no database", []string{"backup", to + "2", "--database", path + "x"}, cli.ExitUsage, "does not exist"},
		{"a server", []string{"backup", to + "2", "--database", "postgres://u:planted@127.0.0.1/x"}, cli.ExitUsage, "pg_dump"},
	} {
		got := clitest.Run(t, Command(), "", tt.args...)
		if got.Code != tt.code || !strings.Contains(got.Out+got.Errors, tt.want) || strings.Contains(got.Errors, "planted") {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	raw, err := sql.Open("sqlite", to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	var n int
	if err := raw.QueryRowContext(t.Context(), "SELECT count(*) FROM forbear_deliveries").Scan(&n); err != nil || n != 10 {
		t.Errorf("%d deliveries in the copy, %v", n, err)
	}
	if _, err := os.Stat(to + "2"); err == nil {
		t.Error("a backup that failed has left a file")
	}
}
