package main

import (
	"fmt"
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

func parse(t *testing.T, version string, major, minor *int) {
	t.Helper()
	var patch int
	if _, err := fmt.Sscanf(version, "v%d.%d.%d", major, minor, &patch); err != nil {
		t.Fatalf("%s: %v", version, err)
	}
}

func format(major, minor, patch int) string { return fmt.Sprintf("v%d.%d.%d", major, minor, patch) }
