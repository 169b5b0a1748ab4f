package foreign

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

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
			return p.quoted(), line, column, '"'
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
			p.quoted()
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

// cursor goes through a text byte by byte and keeps count of lines, and of columns in
// characters.
type cursor struct {
	data         []byte
	pos          int
	line, column int
}

// next moves on by one byte.
func (c *cursor) next() {
	if c.data[c.pos] == '\n' {
		c.line, c.column = c.line+1, 0
	}
	if utf8.RuneStart(c.data[c.pos]) {
		c.column++
	}
	c.pos++
}

// quoted returns the text from behind the quote at the cursor up to the closing one,
// or to the end of the data. A backslash takes the next byte as it is.
func (c *cursor) quoted() string {
	quote := c.data[c.pos]
	var b strings.Builder
	c.next()
	for c.pos < len(c.data) && c.data[c.pos] != quote {
		if c.data[c.pos] == '\\' && c.pos+1 < len(c.data) {
			c.next()
		}
		b.WriteByte(c.data[c.pos])
		c.next()
	}
	if c.pos < len(c.data) {
		c.next()
	}
	return b.String()
}
