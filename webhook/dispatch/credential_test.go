package dispatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocalSecrets(t *testing.T) {
	t.Setenv("P_NAME", "value")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "empty"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := LocalSecrets("P_", dir)
	if v, err := s(context.Background(), "env:NAME"); v != "value" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	for _, ref := range []string{"env:PATH", "file:../../etc/passwd", "file:/etc/passwd", "file:empty", "plain", ""} {
		if v, err := s(context.Background(), ref); !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), ref) {
			t.Errorf("%s: got %q, %v", ref, v, err)
		}
	}
}
