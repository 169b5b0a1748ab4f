// Package guide holds the programs of the guides to their documents, for tests.
package guide

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/roottest"
	"github.com/forbear-go/forbear/internal/testkit/transcript"
)

// Check compares the Go blocks of the guide of that name with the program in main.go
// of the working folder, and what main prints with what the guide shows: the first
// block of text, or the first terminal with go run, after the first Go block. A guide
// shows the whole program, or parts of it: lines that follow each other, whatever their
// indentation. In a guide of several programs the name is followed by # and the heading
// above the program.
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
	whole, blocks := withoutComment(read(t, program)), fences.FindAllStringSubmatch(doc, -1)
	shown := 0
	for _, block := range blocks {
		language, text := block[1], block[2]
		switch {
		case language == "go" && strings.Contains(text, "package main\n"):
			shown++
			if strings.TrimPrefix(text, "// main.go\n\n") != whole {
				t.Errorf("the guide %s does not show %s as it is", name, program)
			}
		case language == "go":
			shown++
			if !strings.Contains(flat(whole), flat(text)) {
				t.Errorf("the guide %s shows what is not in %s:\n%s", name, program, text)
			}
		case shown > 0 && (language == "text" || language == "console" && strings.Contains(text, "go run ")):
			shown := slices.DeleteFunc(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), func(l string) bool { return strings.HasPrefix(l, "$ ") })
			if err := transcript.Match(shown, printed); err != nil {
				t.Errorf("the program of the guide %s: %v", name, err)
			}
			return
		}
	}
	if shown == 0 {
		t.Fatalf("the guide %s has no program", name)
	}
}

var fences = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// flat takes the indentation off each line.
func flat(program string) string {
	lines := strings.Split(program, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
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
