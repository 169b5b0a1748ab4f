package database

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// application makes the file of an application, which others may read.
func application(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), os.Chmod(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// journal reads what an application finds in its file.
func journal(t *testing.T, path string) (mode string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil {
		t.Fatal(err)
	}
	return mode
}

// Nothing about the file of an application is changed unless that is asked for, once; its
// mode never is.
func TestFileOfAnApplication(t *testing.T) {
	path := application(t)
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for _, use := range []Use{{}, {Writes: true}} {
		db, err := OpenFor(t.Context(), path, use)
		if err == nil {
			_ = db.Close()
		}
		if !errors.Is(err, ErrShared) {
			t.Errorf("%+v: %v", use, err)
		}
	}
	if got := mode(); runtime.GOOS != "windows" && got != 0o644 {
		t.Errorf("refused, and the file's mode is %#o", got)
	}
	if got := journal(t, path); got != "delete" {
		t.Errorf("the journal's mode is %s", got)
	}
	for _, use := range []Use{{Shared: true}, {Writes: true}, {}} { // once it has forbear's tables
		db, err := OpenFor(t.Context(), path, use)
		if err != nil {
			t.Fatalf("%+v: %v", use, err)
		}
		_, err = db.Migrate(t.Context())
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if db.switched != use.Shared {
			t.Errorf("%+v: switched %v", use, db.switched)
		}
		if db.note == wasReadable || runtime.GOOS != "windows" && db.note != isReadable {
			t.Errorf("%+v: note %q", use, db.note)
		}
	}
	if got := mode(); runtime.GOOS != "windows" && got != 0o644 {
		t.Errorf("the file's mode is %#o", got)
	}
}
