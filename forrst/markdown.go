package forrst

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// named finds the boolean under the names that code gives it, such as retryable,
// isRetryable and is_retryable, and none of NonRetryableException.
var named = regexp.MustCompile(`(?i)(^|[^a-z0-9_])\$?(is_?)?retryable([^a-z0-9_]|$)`)

// inCode finds a code span.
var inCode = regexp.MustCompile("`[^`]*`|<code>[^<]*</code>")

// quoted finds the boolean in an indented example.
var quoted = regexp.MustCompile(`^( {4}|\t).*["']retryable["']`)

// row finds the row between the heading of a table and its body.
var row = regexp.MustCompile(`^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$`)

// markdown walks the fenced blocks, and names the places around them and in them
// that a person has to rewrite.
func (m *Migration) markdown() {
	var b fence
	heading, at := "", 0 // heading is the line before, which may be that of a table
	inTable, listed := false, false
	for raw := range bytes.Lines(m.from) {
		// An example may stand in a quotation.
		line := strings.TrimSpace(strings.TrimLeft(string(raw), "> \t"))
		switch opened, language, ok := openFence(line); {
		case b.mark != "":
			if b.closes(line) {
				m.example(b, at)
				b = fence{}
			}
		case ok:
			b = fence{mark: opened, language: language, start: at + len(raw)}
			heading, inTable = "", false
		default:
			if inTable = inTable && strings.Contains(line, "|"); !inTable && row.MatchString(line) && strings.Contains(heading, "|") {
				inTable, listed = true, named.MatchString(heading)
				if listed {
					m.left(at-1, KindTable, "a table has a column for retryable: only JSON examples are rewritten")
				}
			}
			switch {
			case inTable && !listed && named.MatchString(line):
				m.left(at, KindTable, "a row of a table names retryable: only JSON examples are rewritten")
			case !inTable && quoted.Match(raw):
				m.left(at, KindCode, "an indented example names retryable: only fenced JSON examples are rewritten")
			case !inTable && speaks(line) && !m.startsTable(at+len(raw), line):
				m.left(at, KindText, "the text speaks of `retryable`")
			}
			heading = line
		}
		at += len(raw)
	}
	// A fence that is never closed reaches to the end of the document.
	if b.mark != "" {
		m.example(b, len(m.from))
	}
}

// speaks reports whether a code span of a line names the boolean.
func speaks(line string) bool {
	return slices.ContainsFunc(inCode.FindAllString(line, -1), named.MatchString)
}

// startsTable reports whether line is the heading of a table, whose second row
// begins at next.
func (m *Migration) startsTable(next int, line string) bool {
	second, _, _ := bytes.Cut(m.from[next:], []byte("\n"))
	return strings.Contains(line, "|") && row.MatchString(strings.TrimSpace(strings.TrimLeft(string(second), "> \t")))
}

// fence is a fenced block that is open. The zero value is none.
type fence struct {
	mark     string // the run of ` or ~ that opened it
	language string
	start    int // of its first line
}

// openFence reads the first line of a fenced block.
func openFence(line string) (mark, language string, ok bool) {
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return "", "", false
	}
	rest := strings.TrimLeft(line, line[:1])
	if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
		language, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
		return line[:n], language, true
	}
	return "", "", false
}

// closes reports whether a line ends the block: a run of its character, as long as
// the first one at least.
func (b fence) closes(line string) bool {
	return len(line) >= len(b.mark) && strings.Trim(line, b.mark[:1]) == ""
}

// example rewrites a fenced block of JSON, and lists each line of another language
// that names the boolean.
func (m *Migration) example(b fence, end int) {
	if m.document(b.start, end, strings.HasPrefix(strings.ToLower(b.language), "json")) {
		return
	}
	what := "an example"
	if b.language != "" {
		what = fmt.Sprintf("an example in %.20s", b.language)
	}
	at := b.start
	for line := range bytes.Lines(m.from[b.start:end]) {
		if named.Match(line) {
			m.left(at, KindCode, what+" names retryable: only JSON examples are rewritten")
		}
		at += len(line)
	}
}
