package foreign

import (
	"strings"
	"unicode/utf8"
)

// cursor goes through a text byte by byte and keeps count of lines, and of columns in
// characters, for the notations that products have of their own.
type cursor struct {
	data         []byte
	pos          int
	line, column int
}

// begin returns a cursor at the beginning of a text.
func begin(data []byte) cursor { return cursor{data: data, line: 1, column: 1} }

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
// or to the end of the data. A backslash takes the next byte as it is, where escapes
// says so.
func (c *cursor) quoted(escapes bool) string {
	quote := c.data[c.pos]
	var b strings.Builder
	c.next()
	for c.pos < len(c.data) && c.data[c.pos] != quote {
		if escapes && c.data[c.pos] == '\\' && c.pos+1 < len(c.data) {
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
