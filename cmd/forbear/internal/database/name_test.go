package database

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each form of a name is understood or refused, and none of them shows its password or
// makes a file that is named after it.
func TestNames(t *testing.T) {
	const secret = "hunter2"
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		name   string
		server bool   // understood as that of a server, where no one listens
		want   string // in the error
	}{
		{"postgres://u:hunter2@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"POSTGRES://u:hunter2@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"PostgreSQL://u:hunter2@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"host=127.0.0.1 password=hunter2 port=1 user=u dbname=db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"user=u password=hunter2 host=127.0.0.1 port=1 dbname=db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"password = 'hunter2' host=127.0.0.1 port = 1 user=u dbname=db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"sslkey=/k password=hunter2 sslmode=none", true, "cannot be reached"},
		{"postgres://u:hun/hunter2@127.0.0.1:1/db", true, "database postgres://(unreadable)"},
		{"postgres://u:12/hunter2@127.0.0.1/db", true, "database postgres://(unreadable)"},
		{"postgres://u:12/a?hunter2@127.0.0.1/db", true, "database postgres://(unreadable)"},
		{"postgres://u:12@hunter2@127.0.0.1/db", true, "database postgres://(unreadable)"},
		{"postgres://u:%zzhunter2@127.0.0.1/db", true, "database postgres://(unreadable)"},
		{"postgres://u:12#hunter2@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"postgres://u:12?hunter2@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"postgres://u:12[hunter2]@127.0.0.1:1/db", true, "database postgres://127.0.0.1:1/db cannot be reached"},
		{"postgres://u:hunter2@127.0.0.1:1,127.0.0.1:2/a%40b?application_name=a@b", true, "database postgres://127.0.0.1:1,127.0.0.1:2/a@b cannot be reached"},
		{"host=127.0.0.1 port=hunter2", true, "cannot be parsed"},
		{"postgres:u:hunter2@127.0.0.1/db", false, "database postgres:...: want postgres://"},
		{"u:hunter2@127.0.0.1/db", false, "database: want postgres://"},
		{"mysql://u:hunter2@127.0.0.1/db", false, "database mysql:...: want postgres://"},
		{"sqlite://hunter2", false, "database sqlite:...: want postgres://"},
		{"sqlite:hunter2.db", false, "database sqlite:...: want postgres://"},
		{"://hunter2", false, "database: want postgres://"},
		{"file:x.db?_pragma=key('hunter2')", false, "want the path alone"},
		{"FILE:x.db", false, "want the path alone"},
	} {
		if got := isServer(tt.name); got != tt.server {
			t.Errorf("%q is a server: %t, want %t", tt.name, got, tt.server)
		}
		db, err := Open(t.Context(), tt.name)
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.want)
		}
		for _, err := range []error{Exists(tt.name), Backup(t.Context(), tt.name, "copy")} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", tt.name, err)
			}
		}
		if shown := Name(tt.name); strings.Contains(shown, secret) || strings.Contains(shown, "12/") {
			t.Errorf("%q is shown as %q", tt.name, shown)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	for _, path := range []string{"forbear.db", "./a:b.db", "/srv/shop?x.db", `C:\shop.db`, "backup-12:30.db", "a=b.db", ":memory:"} {
		if err := check(path); err != nil || isServer(path) {
			t.Errorf("%q as a path: %v", path, err)
		}
	}
}

// The name of a socket's folder is no password.
func TestNameOfASocket(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	if got := Name("host=" + dir + " dbname=shop password=hunter2"); strings.Contains(got, "hunter2") || !strings.HasPrefix(got, "postgres:///shop?host=") {
		t.Errorf("shown as %q", got)
	}
}
