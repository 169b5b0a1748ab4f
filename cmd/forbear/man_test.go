package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The manual page of each command is well-formed, and has all of its flags. A
// binary without a checkout has no date, which would be the one complaint.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if got := invoke(t, "", "man", "--dir", dir); got.Code != 0 {
		t.Fatalf("got %+v", got)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != len(program())+1 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, name := range pages {
		text := strings.Replace(slurp(t, name), ` 1 "" `, ` 1 "2026-03-01" `, 1)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	needs(t, "mandoc", "mandoc")
	if out, err := exec.Command("mandoc", append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v: %s", err, out)
	}
	out, err := exec.Command("mandoc", "-Tascii", filepath.Join(dir, "forbear-check.1")).Output()
	plain := withoutOverstrikes(string(out))
	for _, want := range []string{"FORBEAR-CHECK(1)", "--max-amplification", "forbear check --explain FC105"} {
		if err != nil || !strings.Contains(plain, want) {
			t.Errorf("the page lacks %q: %v:\n%s", want, err, plain)
		}
	}
}

// withoutOverstrikes removes how a typewriter prints bold: each letter twice.
func withoutOverstrikes(s string) string {
	var b []byte
	for i := range len(s) {
		if s[i] == '\b' {
			b = b[:len(b)-1]
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}
