//forbear:plain nothing runs at once
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
)

// The manual page of each command is well-formed, and has all of its flags.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, "forbear v1.2.3"); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != len(commands.Program()) { // help has none, and the program has one
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	if _, err := exec.LookPath("mandoc"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no mandoc: sudo apt-get install mandoc")
		}
		t.Skip("no mandoc: sudo apt-get install mandoc")
	}
	out, _ := exec.Command("mandoc", append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput()
	for complaint := range strings.Lines(string(out)) {
		// Cobra writes the month alone, and md2man a tab before what a flag means.
		if !strings.Contains(complaint, "cannot parse date") && !strings.Contains(complaint, "tab in filled text") {
			t.Errorf("mandoc: %s", complaint)
		}
	}
	out, err = exec.Command("mandoc", "-Tascii", filepath.Join(dir, "forbear-check.1")).Output()
	plain := withoutOverstrikes(string(out))
	for _, want := range []string{"FORBEAR-CHECK(1)", "--max-amplification", "forbear check --explain FC105", "forbear v1.2.3"} {
		if err != nil || !strings.Contains(plain, want) {
			t.Errorf("the page lacks %q: %v:\n%s", want, err, plain)
		}
	}
}

// What a help says in plain text is no markup.
func TestMarkdown(t *testing.T) {
	got := markdown("order.* and a_b\n  code *\n\nend")
	if want := "order.\\* and a\\_b\n\n    code *\n\n\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
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
