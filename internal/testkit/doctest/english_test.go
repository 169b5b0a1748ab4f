package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// patterns are turns of phrase that come from another language, with what to write instead.
var patterns = []struct {
	found   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b([Ii]s|[Aa]re|[Ww]as|[Ww]ere|becomes?) no\b( longer| more than)?`), "is not a ..., does not have a ..."},
	{regexp.MustCompile(`\bhas no \w+ of its own\b`), "shares the ... of ..."},
	{regexp.MustCompile(`\b[Nn]or (is|are|was|were|do|does|did|has|have|can|may|will)\b`), "and ... is not"},
	{regexp.MustCompile(`\bof before\b`), "earlier, existing"},
	{regexp.MustCompile(`\b[Mm]end(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`\bsuch as (wait|are|is|have|were)\b`), "those that ..."},
	{regexp.MustCompile(`\bfor good\b`), "permanently"},
	{regexp.MustCompile(`\bput off\b`), "postponed"},
	{regexp.MustCompile(`\bholds? no (one|other)`), "does not delay the others"},
	{regexp.MustCompile(`\bare others\b`), "changed"},
	{regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Ww]hoever)\b`), "name the subject"},
	{regexp.MustCompile(`\b(is|are) told of\b`), "is notified of"},
	{regexp.MustCompile(`, which the log says\b`), "and the log says so"},
	{regexp.MustCompile(`\b[Tt]he (former|latter)\b`), "name it again"},
	{regexp.MustCompile(`\blets? loose\b`), "release"},
	{regexp.MustCompile(`(^|[.:;] )(Who|Whatever) [a-z]`), "Anyone who ..., any ... that ..."},
}

// foreign returns what is found of the patterns in a text, and what to write instead.
func foreign(text string) (found []string) {
	for _, p := range patterns {
		for _, at := range p.found.FindAllStringIndex(text, -1) {
			hit := text[at[0]:at[1]]
			before := strings.ToLower(text[max(0, at[0]-6):at[0]])
			if strings.HasSuffix(hit, " longer") || strings.HasSuffix(hit, " more than") || strings.HasSuffix(before, "there ") || strings.HasSuffix(before, "there") {
				continue // is no longer, there is no
			}
			if question := text[at[0]:]; strings.Contains(hit, "Who") && strings.Contains(strings.SplitAfter(question, "?")[0], "?") && !strings.Contains(strings.SplitAfter(question, "?")[0], ". ") {
				continue
			}
			found = append(found, fmt.Sprintf("%q: write %s", strings.TrimSpace(hit), p.instead))
		}
	}
	return found
}

var (
	codeSpan = regexp.MustCompile("``[^`]+``|`[^`]+`")
	anyLink  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	sentence = regexp.MustCompile(`[.?!](?:\*\*|\))? `)
)

// prose is a paragraph, an item of a list or a cell of a table.
type prose struct {
	line      int
	text      string
	paragraph bool
}

// proseOf returns the prose of a document: without code, and with a code span or a link as
// its words.
func proseOf(document string) (all []prose) {
	var now prose
	end := func() {
		if now.text != "" {
			all = append(all, now)
		}
		now = prose{}
	}
	inFence := false
	for i, line := range strings.Split(document, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
			end()
			continue
		}
		if inFence || strings.HasPrefix(line, "    ") && now.text == "" || strings.HasPrefix(line, "<") {
			continue
		}
		line = anyLink.ReplaceAllString(codeSpan.ReplaceAllString(line, "CODE"), "$1")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			end()
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(line, "|") {
				if cell = strings.TrimSpace(cell); strings.Trim(cell, "-: ") != "" {
					all = append(all, prose{i + 1, cell, false})
				}
			}
		default:
			if bullet.MatchString(line) {
				end()
				now = prose{line: i + 1}
			} else if now.text == "" {
				now = prose{line: i + 1, paragraph: true}
			}
			now.text = strings.TrimSpace(now.text + " " + strings.TrimSpace(line))
		}
	}
	end()
	return all
}

// The documents are read at the first reading: short sentences, in English.
func TestDocumentsAreEnglish(t *testing.T) {
	const mostWords, mostOfParagraph = 30, 80
	walk(t, func(name string) {
		if filepath.Ext(name) != ".md" || name == "CHANGELOG.md" || strings.Contains(name, "docs/forrst/") || strings.HasPrefix(name, "bench/") {
			return
		}
		strict := name == "README.md" || strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/reference/")
		for _, p := range proseOf(read(t, name)) {
			for _, f := range foreign(p.text) {
				t.Errorf("%s:%d: %s", name, p.line, f)
			}
			if !strict {
				continue
			}
			if n := len(strings.Fields(p.text)); p.paragraph && n > mostOfParagraph {
				t.Errorf("%s:%d: a paragraph of %d words: make it a list, or two", name, p.line, n)
			}
			for _, s := range sentence.Split(p.text, -1) {
				if n := len(strings.Fields(s)); n > mostWords {
					t.Errorf("%s:%d: a sentence of %d words: %.60s...", name, p.line, n, s)
				}
			}
		}
	})
}

// So are the messages, help texts and flags of the program.
func TestMessagesAreEnglish(t *testing.T) {
	texts := 0
	walk(t, func(name string) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testkit/") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "tools/") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, read(t, name), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || strings.Count(text, " ") < 2 {
				return true
			}
			texts++
			for _, f := range foreign(codeSpan.ReplaceAllString(strings.Join(strings.Fields(text), " "), "CODE")) {
				t.Errorf("%s: %s", files.Position(lit.Pos()), f)
			}
			return true
		})
	})
	if texts < 2000 {
		t.Errorf("%d texts: the messages were not found", texts)
	}
}

// The checks find what they are made for.
func TestForeign(t *testing.T) {
	for text, found := range map[string]bool{
		"it is no dead letter":                   true,
		"There is no release yet":                false,
		"it is no longer there":                  false,
		"Who reaches it uses its credentials.":   true,
		"Who decides? The engine.":               false,
		"nor is the other one":                   true,
		"an endpoint of before is mended":        true,
		"Anyone who can reach it may use it.":    false,
		"the file is fixed, and the log says so": false,
	} {
		if got := foreign(text); (len(got) > 0) != found {
			t.Errorf("%q: %q, want %v", text, got, found)
		}
	}
	got := proseOf("# No\n\nA b `c d`\ne [f](g).\n\n- h\n  i\n- j\n\n```\nno\n```\n\n| k | l m |\n|---|---|\n")
	var texts []string
	for _, p := range got {
		texts = append(texts, p.text)
	}
	if want := "A b CODE e f.|- h i|- j|k|l m"; strings.Join(texts, "|") != want {
		t.Errorf("prose: %q, want %s", texts, want)
	}
}
