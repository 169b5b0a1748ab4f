// Package guide holds the programs of the guides to their documents, for tests.
package guide

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/roottest"
)

// Check compares the program in main.go of the working folder with the one in
// the guide of that name, and what main prints with what the guide says that it
// prints: the first Go program and the first block of text after it. In a guide of
// several programs the name is followed by # and the heading above the program.
func Check(t *testing.T, name string, main func()) {
	t.Helper()
	Holds(t, name, "main.go", output(t, main))
}

// Holds does the same with the program of another folder, whose output is known.
func Holds(t *testing.T, name, program, printed string) {
	t.Helper()
	file, heading, several := strings.Cut(name, "#")
	doc := read(t, roottest.Path(filepath.Join("docs", "guides", file+".md")))
	if several {
		doc = section(t, doc, heading)
	}
	_, rest, ok := strings.Cut(doc, "```go\npackage main\n")
	if !ok {
		t.Fatalf("the guide %s has no program", name)
	}
	shown, rest, _ := strings.Cut(rest, "```\n")
	if withoutComment(read(t, program)) != "package main\n"+shown {
		t.Errorf("the guide %s does not show %s as it is", name, program)
	}
	_, rest, ok = strings.Cut(rest, "```text\n")
	want, _, _ := strings.Cut(rest, "```\n")
	if !ok || printed != want {
		t.Errorf("the program of the guide %s prints\n%s\nwant\n%s", name, printed, want)
	}
}

// Prints holds what main prints to the guide of that name: all of it, as the output of one
// of the guide's commands.
func Prints(t *testing.T, name string, main func()) {
	t.Helper()
	doc := read(t, roottest.Path(filepath.Join("docs", "guides", name+".md")))
	if printed := output(t, main); !strings.Contains(doc, "\n"+printed+"```\n") {
		t.Errorf("the guide %s does not show what the program prints:\n%s", name, printed)
	}
}

// section returns the part of a document under a heading of the second level.
func section(t *testing.T, doc, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the guide has no heading %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// withoutComment takes the package's comment off a program.
func withoutComment(program string) string {
	if _, rest, ok := strings.Cut(program, "\npackage main\n"); ok {
		return "package main\n" + rest
	}
	return program
}

// output runs main and returns what it prints.
func output(t *testing.T, main func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	printed := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		printed <- string(all)
	}()
	func() {
		defer func() { os.Stdout = stdout; _ = w.Close() }()
		main()
	}()
	return <-printed
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
