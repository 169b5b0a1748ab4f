package foreign

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// caddyParser reads the grammar of Caddyfiles: a line is a directive, and a brace at
// its end opens a block.
type caddyParser struct {
	cursor
	part   *Part
	marked bool // a reverse_proxy was met
}

func (p *caddyParser) fault(format string, args ...any) *policyfile.Fault {
	return &policyfile.Fault{Position: p.part.at(p.line, p.column), Message: fmt.Sprintf(format, args...)}
}

// block reads directives up to the brace that closes it, or the end at depth 0.
func (p *caddyParser) block(depth int) (all []directive, fault *policyfile.Fault) {
	all = []directive{}
	if depth > maxDepth {
		return all, p.fault("more than %d blocks within each other", maxDepth)
	}
	var d directive
	finish := func() {
		if len(d.args) > 0 || d.block != nil {
			p.marked = p.marked || len(d.args) > 0 && d.args[0] == "reverse_proxy"
			if len(d.args) == 0 {
				d.args = []string{""}
			}
			all = append(all, d)
		}
		d = directive{}
	}
	for {
		word, at, quoted, end := p.word()
		switch {
		case end == 0 && word == "" && !quoted:
			finish()
			if depth > 0 {
				return all, p.fault("a block has no end")
			}
			return all, nil
		case end == '\n' && word == "" && !quoted:
			finish()
			continue
		case word == "{" && !quoted:
			if len(d.args) == 0 {
				d.at = at
			}
			if d.block, fault = p.block(depth + 1); fault != nil {
				return all, fault
			}
			finish()
			continue
		case word == "}" && !quoted:
			finish()
			if depth == 0 {
				return all, p.fault("unexpected }")
			}
			return all, nil
		}
		if len(d.args) == 0 {
			d.at = at
		}
		d.args = append(d.args, word)
	}
}

// word returns the next word, or an empty one with what ended the line: a newline, or
// 0 at the end of the text.
func (p *caddyParser) word() (word string, at policyfile.Position, quoted bool, end byte) {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '\n':
			p.next()
			return "", at, false, '\n'
		case c == ' ' || c == '\t' || c == '\r' || c == '\\' && p.pos+1 < len(p.data) && p.data[p.pos+1] == '\n':
			if p.next(); c == '\\' {
				p.next()
			}
		case c == '#':
			for p.pos < len(p.data) && p.data[p.pos] != '\n' {
				p.next()
			}
		case c == '"' || c == '`':
			at = p.part.at(p.line, p.column)
			return p.quoted(c == '"'), at, true, ' '
		default:
			at = p.part.at(p.line, p.column)
			start := p.pos
			for p.pos < len(p.data) && !bytes.ContainsRune([]byte(" \t\r\n"), rune(p.data[p.pos])) {
				p.next()
			}
			word = string(p.data[start:p.pos])
			if marker, ok := strings.CutPrefix(word, "<<"); ok && marker != "" {
				return p.heredoc(marker), at, true, ' '
			}
			return word, at, false, ' '
		}
	}
	return "", at, false, 0
}

// heredoc returns the lines up to the one that begins with the marker, or the end.
func (p *caddyParser) heredoc(marker string) string {
	start := p.pos
	for p.pos < len(p.data) {
		if p.data[p.pos] == '\n' {
			line, _, _ := bytes.Cut(p.data[p.pos+1:], []byte("\n"))
			if text := bytes.TrimLeft(line, " \t"); bytes.HasPrefix(text, []byte(marker)) {
				end := p.pos
				for range 1 + len(line) - len(text) + len(marker) {
					p.next()
				}
				return string(p.data[start:end])
			}
		}
		p.next()
	}
	return string(p.data[start:])
}
