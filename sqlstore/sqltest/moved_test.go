package sqltest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// SQLite goes on with a file that is not there any more. Nothing is acknowledged into one
// that no one can find, no other one is made in its place, and it goes on when the file is
// back.
func TestMovedFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(path string) error
		undo func(path string) error // nil: it cannot come back
	}{
		{"moved", func(p string) error { return os.Rename(p, p+".old") }, func(p string) error { return os.Rename(p+".old", p) }},
		{"deleted", os.Remove, nil},
		{"replaced", func(p string) error {
			b, err := os.ReadFile(p)
			return errors.Join(err, os.Rename(p, p+".old"), os.WriteFile(p, b, 0o600))
		}, func(p string) error { return os.Rename(p+".old", p) }},
		{
			"folder moved", func(p string) error { return os.Rename(filepath.Dir(p), filepath.Dir(p)+".old") },
			func(p string) error { return os.Rename(filepath.Dir(p)+".old", filepath.Dir(p)) },
		},
		{"log deleted", func(p string) error { return os.Remove(p + "-wal") }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "forbear.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			db := open(t, path)
			accept := func(id string) error {
				_, err := db.Webhooks().Accept(t.Context(), []webhook.Message{{ID: id, Endpoints: []string{"a"}, Body: []byte("{}")}}, nil)
				return err
			}
			if err := errors.Join(accept("before"), db.Probe(t.Context()), tt.do(path)); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{accept("lost"), accept("lost"), db.Probe(t.Context())} {
				if !errors.Is(err, sqlstore.ErrMoved) {
					t.Errorf("got %v", err)
				}
			}
			if _, err := os.Stat(path); tt.name == "moved" && err == nil {
				t.Error("another file is in its place")
			}
			if tt.undo == nil {
				return
			}
			if err := tt.undo(path); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(accept("after"), db.Probe(t.Context())); err != nil {
				t.Errorf("it is back: %v", err)
			}
		})
	}
}

// A file that is moved while a transaction is open has what is committed then, and no one
// is told that it was accepted.
func TestMovedWithinATransaction(t *testing.T) {
	path := file(t)
	db := open(t, path)
	run1(t, pool(t, "sqlite", path), `INSERT INTO forbear_outbox (message_id, endpoint, type, body) VALUES ('m', 'a', 't', '{}')`)
	moved := false
	_, err := db.Webhooks().Relay(t.Context(), 1, func(*webhook.Message) (map[string]bool, error) {
		if moved {
			return nil, nil
		}
		moved = true
		return nil, os.Rename(path, path+".old")
	})
	if !moved || !errors.Is(err, sqlstore.ErrMoved) {
		t.Errorf("moved %t, %v", moved, err)
	}
}
