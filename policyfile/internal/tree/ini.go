package tree

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear/policyfile"
)

// INI parses sections of settings: a map of maps. A line that is indented goes on with the
// setting above it, and is left out: the files of AWS's SDKs have settings within settings
// there. ok is false for a text that is not of this form: the first line that says anything
// must begin a section, and each of the others a section or a setting.
func INI(name string, data []byte) (root *Node, ok bool) {
	root = newMap(policyfile.Position{File: name, Line: 1, Column: 1})
	sections := map[string]*Node{}
	var section *Node
	number, margin, settings := 0, -1, 0
	for line := range bytes.Lines(data) {
		number++
		text, indent := trimmed(bytes.TrimRight(line, " \t\r\n"))
		if len(text) == 0 || text[0] == '#' || text[0] == ';' {
			continue
		}
		if margin < 0 {
			margin = indent // of a text inside of another file
		}
		at := policyfile.Position{File: name, Line: number, Column: indent + 1}
		if title, found := heading(text); found {
			// A section may stand twice: its settings are those of both.
			if section = sections[title]; section == nil {
				section = newMap(at)
				sections[title] = section
				root.Pairs = append(root.Pairs, Pair{title, at, section})
			}
			continue
		}
		pair, found := setting(text, at)
		switch {
		case section == nil, !found && indent <= margin:
			return nil, false
		case indent <= margin:
			section.Pairs = append(section.Pairs, pair)
			settings++
		}
	}
	for _, p := range root.Pairs {
		p.Value.Twice = twice(p.Value.Pairs)
	}
	return root, settings > 0
}

// heading reads "[profile a]", behind which a comment may stand.
func heading(line []byte) (title string, ok bool) {
	end := bytes.IndexByte(line, ']')
	if line[0] != '[' || end < 0 {
		return "", false
	}
	rest := bytes.TrimLeft(line[end+1:], " \t")
	title = strings.TrimSpace(string(line[1:end]))
	return title, title != "" && !strings.ContainsAny(title, `[{",`) && (len(rest) == 0 || rest[0] == '#' || rest[0] == ';')
}

// setting reads "key = value". A comment behind the value has white space before it.
func setting(line []byte, at policyfile.Position) (Pair, bool) {
	eq := bytes.IndexByte(line, '=')
	if eq <= 0 {
		return Pair{}, false
	}
	value := string(line[eq+1:])
	for i := range value {
		if (value[i] == '#' || value[i] == ';') && i > 0 && (value[i-1] == ' ' || value[i-1] == '\t') {
			value = value[:i]
			break
		}
	}
	from := at
	from.Column += utf8.RuneCount(line[:eq+1]) + len(value) - len(strings.TrimLeft(value, " \t"))
	key := string(bytes.TrimRight(line[:eq], " \t"))
	return Pair{key, at, &Node{Value: strings.TrimSpace(value), At: from}}, true
}
