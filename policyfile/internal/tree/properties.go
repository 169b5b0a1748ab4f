package tree

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear/policyfile"
)

// Properties parses a file of Java's properties, with dotted keys as nested maps: see
// [Dotted]. Spring Boot splits a file into documents at a comment "#---"; each is a
// root. No text is faulty: what Java would refuse stands in a value as it is.
func Properties(name string, data []byte) (roots []*Node) {
	flat := newMap(policyfile.Position{File: name, Line: 1, Column: 1})
	end := func() {
		if len(flat.Pairs) > 0 {
			roots = append(roots, Dotted(flat))
		}
	}
	number := 0
	lines := bytes.Split(data, []byte("\n"))
	for number < len(lines) {
		line, first := lines[number], number+1
		number++
		line, indent := trimmed(line)
		if len(line) == 0 {
			continue
		}
		if line[0] == '#' || line[0] == '!' {
			if indent == 0 && strings.TrimRight(string(line[1:]), " \t") == "---" {
				end()
				flat = newMap(policyfile.Position{File: name, Line: number + 1, Column: 1})
			}
			continue
		}
		for continued(line) {
			line = line[:len(line)-1]
			if number == len(lines) {
				break
			}
			more, _ := trimmed(lines[number])
			line = append(bytes.Clone(line), more...)
			number++
		}
		key, value, width := property(line)
		at := policyfile.Position{File: name, Line: first, Column: indent + 1}
		from := at
		from.Column += width
		flat.Pairs = append(flat.Pairs, Pair{key, at, &Node{Value: value, At: from}})
	}
	end()
	return roots
}

// trimmed returns a line without the white space before it, and how wide that is.
func trimmed(line []byte) (rest []byte, indent int) {
	line = bytes.TrimRight(line, "\r")
	rest = bytes.TrimLeft(line, " \t\f\ufeff")
	return rest, utf8.RuneCount(line[:len(line)-len(rest)])
}

// continued reports whether a line ends in an odd number of backslashes.
func continued(line []byte) bool {
	n := len(line) - len(bytes.TrimRight(line, `\`))
	return n%2 == 1
}

// property splits a line into its key and value. width is how many characters stand
// before the value.
func property(line []byte) (key, value string, width int) {
	i := 0
	for i < len(line) && bytes.IndexByte([]byte("=: \t\f"), line[i]) < 0 {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	end := i
	i += len(line[i:]) - len(bytes.TrimLeft(line[i:], " \t\f"))
	if i < len(line) && (line[i] == '=' || line[i] == ':') {
		i++
	}
	i += len(line[i:]) - len(bytes.TrimLeft(line[i:], " \t\f"))
	return unescaped(line[:end]), strings.TrimRight(unescaped(line[i:]), " \t"), utf8.RuneCount(line[:i])
}

// unescaped resolves the escapes of a key or value.
func unescaped(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if v, err := strconv.ParseUint(string(s[i+1:min(i+5, len(s))]), 16, 16); err == nil && i+5 <= len(s) {
				b.WriteRune(rune(v))
				i += 4
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func newMap(at policyfile.Position) *Node { return &Node{Kind: Map, At: at} }
