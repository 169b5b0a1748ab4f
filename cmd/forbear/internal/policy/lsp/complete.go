package lsp

import (
	"maps"
	"slices"
	"strings"
)

// complete returns what may be written at a place: the keys that the schema has
// there, or the values of a key where they can be counted.
func (d *document) complete(at position) []item {
	items := []item{}
	if !d.policy || at.Line < 0 || at.Line >= len(d.lines) {
		return items
	}
	text := d.lines[at.Line]
	column := offset(text, at.Character)
	o := outlined(append(slices.Clone(d.lines[:at.Line]), text[:column]))
	s := policySchema().at(o.path(o.at.node))
	if s == nil || inComment(text[:column]) {
		return items
	}
	start := min(o.at.start, column)
	end := column + wordLen(text[column:])
	if o.at.value || len(s.keys()) == 0 {
		where := d.span(at.Line, start, end)
		for _, v := range s.values() {
			written := d.quoted(text[start:end], v.text)
			if start > 0 && text[start-1] == ':' { // kind:sync is one word
				written = " " + written
			}
			items = append(items, item{Label: v.text, Kind: itemValue, Documentation: markdown(v.description), TextEdit: edit{where, written}})
		}
		return items
	}
	return append(items, d.keys(o, s, at.Line, start, end)...)
}

// keys completes the keys of a map, but for those that it has already.
func (d *document) keys(o *outline, s *schema, line, start, end int) (items []item) {
	known := s.keys()
	for name := range d.siblings(o, line) {
		delete(known, name)
	}
	text := d.lines[line]
	where := d.span(line, start, end)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		k := known[name]
		written := d.quoted(text[start:end], name)
		switch rest := text[skipSpace(text, end):]; {
		case strings.HasPrefix(rest, ":"):
		case len(o.flow) == 0 && (k.Type == "object" || k.Type == "array"):
			written += ":"
		default:
			written += ": "
		}
		items = append(items, item{Label: name, Kind: itemProperty, Detail: k.detail(), Documentation: markdown(k.about()), TextEdit: edit{where, written}})
	}
	return items
}

// siblings are the keys that the map of the cursor has, on lines before and behind.
func (d *document) siblings(o *outline, line int) map[string]bool {
	whole := outlined(d.lines)
	inside := o.at.node // the same node in both, as it was met before the cursor
	names := map[string]bool{}
	for _, n := range whole.nodes {
		if n.parent == inside && n.line != line {
			names[n.name] = true
		}
	}
	for _, n := range o.nodes { // on the line of the cursor, those before it
		if n.parent == inside && n.line == line {
			names[n.name] = true
		}
	}
	return names
}

// quoted writes a word with the quotes that JSON wants, or that were begun.
func (d *document) quoted(typed, word string) string {
	inJSON := strings.HasPrefix(strings.TrimLeft(d.text, " \t\r\n"), "{")
	switch {
	case strings.HasPrefix(typed, "'"):
		return "'" + word + "'"
	case strings.HasPrefix(typed, `"`), inJSON && word != "true" && word != "false":
		return `"` + word + `"`
	}
	return word
}

// wordLen is the length of what follows the cursor and belongs to its word.
func wordLen(rest string) int {
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && r != '"' && r != '\'' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	if end < 0 {
		return len(rest)
	}
	return end
}

// inComment reports whether a line has become a comment.
func inComment(text string) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '#' && (i == 0 || text[i-1] == ' '):
			return true
		case text[i] == '"' || text[i] == '\'':
			i = quoteEnd(text, i) - 1
		}
	}
	return false
}

// markdown is a text that may be empty.
func markdown(text string) *markup {
	if text == "" {
		return nil
	}
	return &markup{"markdown", text}
}
