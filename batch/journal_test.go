package batch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/batch"
)

func open(t testing.TB, path string) *batch.File {
	t.Helper()
	j, err := batch.OpenFile(path, "job")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func finish(t testing.TB, j *batch.File, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := j.Finish(id, batch.Done); err != nil {
			t.Fatal(err)
		}
	}
}

// written returns a journal's text with two items.
func written(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed")
	j := open(t, path)
	finish(t, j, "a", "b\n\x00\"ü")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Wherever the last write is torn, the items before it are known and the next
// ones are written well.
func TestTornJournal(t *testing.T) {
	text := written(t)
	for n := range len(text) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00"} {
			path := filepath.Join(t.TempDir(), fmt.Sprint(n))
			if err := os.WriteFile(path, append(text[:n:n], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, path)
			want := 0
			for i, b := range text[:n] {
				if b == '\n' && i > 40 {
					want++
				}
			}
			if j.Len() != want {
				t.Fatalf("cut at %d: %d items, want %d", n, j.Len(), want)
			}
			finish(t, j, "c")
			_ = j.Close()
			if j = open(t, path); j.Len() != want+1 || !j.Finished("c") {
				t.Fatalf("cut at %d: %d items after the next run, want %d", n, j.Len(), want+1)
			}
		}
	}
}

func TestDamagedJournal(t *testing.T) {
	text := written(t)
	path := filepath.Join(t.TempDir(), "j")
	for name, change := range map[string]func([]byte) []byte{
		"of another job": func(b []byte) []byte { b[len("forbear batch journal 1: ")+1]++; return b },
		"in the middle":  func(b []byte) []byte { b[35] ^= 1; return b },
		"something else": func([]byte) []byte { return []byte("id,amount\n1,2\n") },
	} {
		if err := os.WriteFile(path, change(append([]byte{}, text...)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := batch.OpenFile(path, "job"); !errors.Is(err, batch.ErrJournal) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// After a failed write nothing follows the torn line.
func TestJournalStopsAfterAnError(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Finish("a", batch.Done); err == nil || j.Finished("a") {
		t.Errorf("got %v", err)
	}
}

// Any file is a journal or an error, and a journal goes on working.
func FuzzJournal(f *testing.F) {
	text := written(f)
	f.Add(text)
	f.Add(text[:len(text)-3])
	f.Add(append(text[:len(text):len(text)], text[26:]...))
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, fmt.Sprint(os.Getpid()))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := batch.OpenFile(path, "job")
		if err != nil {
			if !errors.Is(err, batch.ErrJournal) {
				t.Errorf("got %v", err)
			}
			left, _ := os.ReadFile(path)
			if string(left) != string(text) {
				t.Error("a file that is not a journal was changed")
			}
			return
		}
		n := j.Len()
		if !j.Finished("new") {
			n++
		}
		finish(t, j, "new")
		_ = j.Close()
		j, err = batch.OpenFile(path, "job")
		if err != nil || j.Len() != n || !j.Finished("new") {
			t.Fatalf("opened again: %v", err)
		}
		_ = j.Close()
	})
}
