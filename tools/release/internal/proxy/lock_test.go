package proxy

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// Two of the same version take turns, and one that is not waited for any longer ends.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, err := lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := lock(ended, name); !errors.Is(err, context.Canceled) {
		t.Errorf("while another has it: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
