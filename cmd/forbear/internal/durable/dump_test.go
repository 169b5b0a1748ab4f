package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// dumpFile returns all bytes of a service's SQLite files.
func dumpFile(t *testing.T, s *Service) []byte {
	t.Helper()
	found, err := filepath.Glob(s.path + "*")
	if err != nil || len(found) == 0 {
		t.Fatalf("no database at %s: %v", s.path, err)
	}
	var all []byte
	for _, f := range found {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}
