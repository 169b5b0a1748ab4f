// Package reference writes the reference pages of docs/reference from the code: what
// a flag, a key, a metric or a reason is called is said in one place. Tests alone use
// it; nothing of it is in the binary.
package reference

import (
	"fmt"
	"strings"
)

// page is a Markdown file under construction.
type page struct {
	strings.Builder
	from string // what it is generated from
}

// begin returns a page with its title.
func begin(title, from string) *page {
	p := &page{from: from}
	p.line("# %s\n", title)
	return p
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// heading writes a heading with its empty lines.
func (p *page) heading(level int, text string) {
	p.line("\n%s %s\n", strings.Repeat("#", level), text)
}

// code writes a block of code.
func (p *page) code(language, text string) {
	p.line("```%s\n%s\n```\n", language, strings.Trim(text, "\n"))
}

// table writes a table. A cell's text is Markdown; a pipe in it is escaped here.
func (p *page) table(head []string, rows [][]string) {
	cells := func(row []string) {
		for _, c := range row {
			p.WriteString("| " + strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", `\|`) + " ")
		}
		p.WriteString("|\n")
	}
	cells(head)
	p.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		cells(row)
	}
	p.WriteString("\n")
}

// tick puts text into backquotes, and leaves an empty one empty.
func tick(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// ticks puts each text into backquotes.
func ticks(texts []string) string { return "`" + strings.Join(texts, "`, `") + "`" }

var specials = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "`", "\\`", "#", `\#`)

// plain escapes what Markdown would take for its own.
func plain(text string) string { return specials.Replace(text) }

// String returns the page with the word that it is generated, one newline at its end,
// and never two empty lines.
func (p *page) String() string {
	text := fmt.Sprintf("%s\n\n---\n\nGenerated from %s: `make reference`.\n", strings.TrimRight(p.Builder.String(), "\n"), p.from)
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	return text
}
