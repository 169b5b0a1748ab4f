package main

import (
	"testing"

	"github.com/forbear-go/forbear/tools/release/internal/run"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := run.Git(t.Context(), dir, args...)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
