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
	for want, s := range map[string]struct {
		from Secrets
		ref  string
	}{
		"environment variable P_NONE is not set: start the process with it": {s, "env:NONE"},
		"there is no such file in the folder of --secrets-dir":              {s, "file:none"},
		"start forbear serve with --secrets-dir":                            {LocalSecrets("P_", ""), "file:none"},
		"want env:NAME or file:NAME":                                        {s, "whsec:none"},
	} {
		if _, err := s.from(context.Background(), s.ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s.ref, err, want)
		}
	}
}
