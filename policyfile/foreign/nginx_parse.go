package foreign

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// directive is one directive of nginx with its place, and its block when it
// has one. args[0] is its name.
type directive struct {
	args  []string
	at    policyfile.Position
	block []directive // not nil where there is one, though it be empty
}

// arg returns the first argument, or "".
func (d *directive) arg() string {
	if len(d.args) < 2 {
		return ""
	}
	return d.args[1]
}

// unset reports whether a value is to be filled in by a template: nginx itself
// takes no variables where this is asked.
func unset(value string) bool {
	return strings.Contains(value, "$") || strings.Contains(value, "{{")
}

// speaksNginx reports whether a text has the grammar of nginx and a directive of
// its that is about passing requests on, or a block that holds such.
func speaksNginx(name string, data []byte) (bool, *policyfile.Fault) {
	p := &nginxParser{part: &Part{Name: name}, data: data, line: 1, column: 1}
	all, fault := p.block(0)
	marks := slices.ContainsFunc(all, nginxMark)
	if fault != nil && (marks || p.marked) {
		if bytes.Contains(data, []byte("{%")) {
			fault.Message = isTemplate
		}
		return false, fault
	}
	return fault == nil && marks, nil
}

// nginxBlocks and nginxWords are directives by which a file of nginx is known.
var (
	nginxBlocks = []string{"http", "server", "upstream", "location", "stream", "events"}
	nginxWords  = []string{"proxy_set_header", "upstream_conf"}
)

func nginxMark(d directive) bool {
	name := d.args[0]
	_, passes := nginxModules[name]
	return d.block != nil && slices.Contains(nginxBlocks, name) || passes || slices.Contains(nginxWords, name) || strings.HasSuffix(name, "_next_upstream")
}

// nginxUnits are the units of nginx's durations; a number without one is in
// seconds.
var nginxUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "": time.Second,
}

// nginxTime reads a duration such as "30s", "500ms" or "1m30s", or seconds
// without a unit. Spaces may separate the parts.
func nginxTime(s string) (sum time.Duration, ok bool) {
	for s != "" {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(s[:end], 10, 64)
		if err != nil {
			return 0, false
		}
		s = s[end:]
		end = 0
		for end < len(s) && (s[end] < '0' || s[end] > '9') {
			end++
		}
		unit, known := nginxUnits[strings.TrimSpace(s[:end])]
		if !known {
			return 0, false
		}
		// A century is as good as what is longer, and does not overflow.
		const most = 100 * 365 * 24 * time.Hour
		sum = min(sum+time.Duration(min(n, int64(most/unit)))*unit, most)
		s = s[end:]
	}
	return sum, true
}

// nginxParser reads the grammar of nginx.conf: words that a semicolon ends,
// or a block in braces. It knows no directives, so that those of any module
// can be read.
type nginxParser struct {
	part         *Part
	data         []byte
	pos          int
	line, column int
	marked       bool // a directive was met by which a file of nginx is known
}

func (p *nginxParser) fault(at policyfile.Position, format string, args ...any) *policyfile.Fault {
	return &policyfile.Fault{Position: at, Message: fmt.Sprintf(format, args...)}
}

// maxDepth bounds blocks within blocks; nginx itself knows five or six.
const maxDepth = 50

// block reads directives up to the brace that closes it, or the end of the
// file at depth 0.
func (p *nginxParser) block(depth int) (all []directive, fault *policyfile.Fault) {
	all = []directive{}
	if depth > maxDepth {
		return all, p.fault(p.part.at(p.line, p.column), "more than %d blocks within each other", maxDepth)
	}
	var d directive
	for {
		word, line, column, end := p.word()
		// A quoted word may be empty and still is an argument.
		if word != "" || end == '"' {
			if len(d.args) == 0 {
				d.at = p.part.at(line, column)
			}
			d.args = append(d.args, word)
		}
		switch end {
		case ';':
			if len(d.args) > 0 {
				all = append(all, d)
			}
			d = directive{}
		case '{':
			if len(d.args) > 0 && strings.HasSuffix(d.args[0], "_by_lua_block") {
				p.lua()
				d.block = []directive{}
				all, d = append(all, d), directive{}
				continue
			}
			inner, fault := p.block(depth + 1)
			if d.block = inner; len(d.args) > 0 {
				all = append(all, d)
				p.marked = p.marked || nginxMark(d)
			}
			if fault != nil {
				return all, fault
			}
			d = directive{}
		case '}', 0:
			switch {
			case len(d.args) > 0:
				return all, p.fault(d.at, "%q has no end", d.args[0])
			case end == 0 && depth > 0:
				return all, p.fault(p.part.at(p.line, p.column), "a block has no end")
			case end == '}' && depth == 0:
				return all, p.fault(p.part.at(p.line, p.column), "unexpected }")
			}
			return all, nil
		}
	}
}

// word returns the next word, its place, and what ended it: a space, a
// quote, one of ; { }, or 0 at the end of the file.
func (p *nginxParser) word() (word string, line, column int, end byte) {
	var b strings.Builder
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		if b.Len() == 0 {
			line, column = p.line, p.column
		}
		switch {
		case c == '#' && b.Len() == 0:
			for p.pos < len(p.data) && p.data[p.pos] != '\n' {
				p.next()
			}
			continue
		case (c == '"' || c == '\'') && b.Len() == 0:
			return p.quoted(c), line, column, '"'
		case bytes.HasPrefix(p.data[p.pos:], []byte("{{")):
			p.expression(&b)
			continue
		case c == '$' && p.pos+1 < len(p.data) && p.data[p.pos+1] == '{':
			b.WriteByte(c)
			p.next() // the brace belongs to the variable
			b.WriteByte('{')
			p.next()
			continue
		// A closing brace may belong to a variable, as in ${name}.
		case c == ';' || c == '{' || c == '}' && !strings.Contains(b.String(), "${"):
			p.next()
			return b.String(), line, column, c
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.next()
			if b.Len() > 0 {
				return b.String(), line, column, ' '
			}
			continue
		case c == '\\' && p.pos+1 < len(p.data):
			p.next()
			c = p.data[p.pos]
		}
		b.WriteByte(c)
		p.next()
	}
	return b.String(), line, column, 0
}

// expression reads what a template fills in, such as {{ tries }}, as part of a word.
func (p *nginxParser) expression(b *strings.Builder) {
	for p.pos < len(p.data) {
		end := bytes.HasPrefix(p.data[p.pos:], []byte("}}"))
		b.WriteByte(p.data[p.pos])
		p.next()
		if end {
			b.WriteByte('}')
			p.next()
			return
		}
	}
}

// lua skips a block of Lua, which follows other rules, up to its closing brace.
func (p *nginxParser) lua() {
	for depth := 1; p.pos < len(p.data) && depth > 0; {
		c := p.data[p.pos]
		switch {
		case c == '"' || c == '\'':
			p.quoted(c)
			continue
		case bytes.HasPrefix(p.data[p.pos:], []byte("--[[")):
			p.skip("]]")
		case bytes.HasPrefix(p.data[p.pos:], []byte("--")):
			p.skip("\n")
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if p.pos < len(p.data) {
			p.next()
		}
	}
}

// skip moves on to the last byte of the next end, or behind the text.
func (p *nginxParser) skip(end string) {
	for p.pos < len(p.data) && !bytes.HasPrefix(p.data[p.pos:], []byte(end)) {
		p.next()
	}
	for range min(len(end)-1, len(p.data)-p.pos) {
		p.next()
	}
}

// quoted returns the text up to the closing quote. A missing one ends at the
// end of the file, where block reports it.
func (p *nginxParser) quoted(quote byte) string {
	var b strings.Builder
	p.next()
	for p.pos < len(p.data) && p.data[p.pos] != quote {
		if p.data[p.pos] == '\\' && p.pos+1 < len(p.data) {
			p.next()
		}
		b.WriteByte(p.data[p.pos])
		p.next()
	}
	if p.pos < len(p.data) {
		p.next()
	}
	return b.String()
}

// next moves on by one byte and keeps count of lines and columns.
func (p *nginxParser) next() {
	if p.data[p.pos] == '\n' {
		p.line, p.column = p.line+1, 0
	}
	p.column++
	p.pos++
}
