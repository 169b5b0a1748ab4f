package doctest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/transcript"
)

// Words that documents may have (as wc counts them): the guides together, each, and all
// documents with the reference.
const (
	guidesWords = 25_000
	guideWords  = 900
	allWords    = 80_000
)

// bullet is the beginning of an item of a list.
var bullet = regexp.MustCompile(`^\s*([-*]|\d+\.) `)

// Documents are as long as someone reads them.
func TestDocumentsStayShort(t *testing.T) {
	guides, all := 0, 0
	walk(t, func(name string) {
		if filepath.Ext(name) != ".md" || name != "README.md" && !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/clients") {
			return // make zoo writes the table and the pages of clients, which are looked up and not read
		}
		n := len(strings.Fields(read(t, name)))
		all += n
		if strings.HasPrefix(name, "docs/guides/") {
			guides += n
			if n > guideWords {
				t.Errorf("%s has %d words, more than %d: make it two pages, or shorter", name, n, guideWords)
			}
		}
	})
	if guides > guidesWords || all > allWords {
		t.Errorf("%d words in the guides, at most %d; %d in all, at most %d", guides, guidesWords, all, allWords)
	}
}

// Every terminal of a guide is run, and every Go fragment compiled, or says why not: an
// indented block would be neither.
func TestBlocksOfGuidesAreHeld(t *testing.T) {
	tests, code := map[string]bool{}, map[string]bool{}
	var programs []string
	walk(t, func(name string) {
		if filepath.Ext(name) != ".go" {
			return
		}
		text := read(t, name)
		programs = append(programs, squeeze(text))
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
				tests[m[1]] = true
			}
		}
	})
	compiled := func(block string) bool {
		block = squeeze(block)
		if !code[block] {
			for _, p := range programs {
				if strings.Contains(p, block) {
					code[block] = true
					break
				}
			}
		}
		return code[block]
	}
	commands, skipped := 0, 0
	walk(t, func(name string) {
		if filepath.Ext(name) != ".md" || name != "README.md" && !strings.HasPrefix(name, "docs/guides/") {
			return
		}
		document := read(t, name)
		blocks, err := transcript.Parse(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, b := range blocks {
			commands += len(b.Steps)
			switch {
			case b.RunBy != "":
				if !tests[b.RunBy] {
					t.Errorf("%s:%d: no test %s", name, b.Line, b.RunBy)
				}
			case b.NotRun != "":
				skipped++
			case b.Language == "go" && b.File == "" && !compiled(b.Text):
				t.Errorf("%s:%d: a fragment of Go that is in no program: the compiler has not seen it", name, b.Line)
			case b.Language == "" || b.Language == "sh" || b.Language == "bash" || b.Language == "shell":
				t.Errorf("%s:%d: a block of the language %q: a terminal is console, output is text", name, b.Line, b.Language)
			}
		}
		before, inFence := "", false
		for i, line := range strings.Split(document, "\n") {
			if strings.HasPrefix(line, "```") {
				inFence = !inFence
			}
			if !inFence && strings.HasPrefix(line, "    ") && line != "```" && strings.TrimSpace(before) == "" {
				t.Errorf("%s:%d: an indented block: use a fence", name, i+1)
			}
			if strings.TrimSpace(line) != "" || before == "" || !bullet.MatchString(before) && !strings.HasPrefix(before, " ") {
				before = line
			}
		}
	})
	if commands < 100 || skipped > commands/3 {
		t.Errorf("%d commands, and %d blocks that are not run", commands, skipped)
	}
}

// squeeze takes what gofmt adds off a program, and empty lines.
func squeeze(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
	}
	return b.String()
}
