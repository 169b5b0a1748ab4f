package forrst

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// node is a JSON value with its place in the text. Rewriting works on places
// and not on decoded values, so that one member changes and every other byte
// stays as its author wrote it.
type node struct {
	start, end int // text[start:end]
	members    []member
	items      []node
	object     bool
}

// member is one name of an object with its value. keyStart is the place of the
// name's opening quote.
type member struct {
	name     string
	keyStart int
	value    node
}

// get returns the value of the last member with that name, as readers do.
func (n *node) get(name string) (*node, bool) {
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return &n.members[i].value, true
		}
	}
	return nil, false
}

// errNoJSON does not quote the text: that is the caller's data.
var errNoJSON = errors.New("not a JSON document")

// maxDepth bounds the nesting of a document, and so the recursion of the
// parser.
const maxDepth = 200

// parse reads a JSON document with the places of its parts.
func parse(text []byte) (n node, err error) {
	if !json.Valid(text) {
		return n, errNoJSON
	}
	p := parser{text: text}
	n, ok := p.value(0)
	if !ok {
		return n, errNoJSON // nested too deep
	}
	return n, nil
}

// parser walks text that json.Valid has accepted: it looks for places and
// checks no syntax.
type parser struct {
	text []byte
	at   int
}

// space skips the four characters that JSON has between tokens (RFC 8259 section
// 2).
func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads one value and the places of its parts. The text is known to be
// valid, so that every index is within it; only the depth is checked.
func (p *parser) value(depth int) (n node, ok bool) {
	if p.space(); depth > maxDepth {
		return n, false
	}
	n.start = p.at
	switch p.text[p.at] {
	case '{':
		n.object = true
		ok = p.list('}', func() bool {
			m := member{keyStart: p.at}
			if json.Unmarshal(p.str(), &m.name) != nil {
				return false
			}
			p.space()
			p.at++ // the colon
			v, ok := p.value(depth + 1)
			m.value = v
			n.members = append(n.members, m)
			return ok
		})
	case '[':
		ok = p.list(']', func() bool {
			v, ok := p.value(depth + 1)
			n.items = append(n.items, v)
			return ok
		})
	// The value is not decoded: only its place counts.
	case '"':
		p.str()
		ok = true
	default:
		for p.at < len(p.text) && !isEnd(p.text[p.at]) {
			p.at++
		}
		ok = true
	}
	n.end = p.at
	return n, ok
}

// list reads what is between brackets; one reads an element.
func (p *parser) list(closing byte, one func() bool) bool {
	for p.at++; ; {
		if p.space(); p.text[p.at] == closing {
			p.at++
			return true
		}
		if p.text[p.at] == ',' {
			p.at++
			p.space()
		}
		if !one() {
			return false
		}
	}
}

// str reads a string and returns it with its quotes. An escaped quote does
// not end it.
func (p *parser) str() []byte {
	start := p.at
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	return p.text[start:p.at]
}

// isEnd reports whether c ends a number or a literal.
func isEnd(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// edit replaces text[start:end].
type edit struct {
	start, end int
	text       string
}

// apply makes the edits, which must not overlap. It sorts them by place;
// edits at the same place keep their order.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, text[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}

// setMember returns the edit that gives object n the member name with that
// value: in place of the present one, or before the closing brace.
func setMember(n *node, name, value string) edit {
	if old, ok := n.get(name); ok {
		return edit{old.start, old.end, value}
	}
	text := strconv.Quote(name) + ":" + value
	if len(n.members) > 0 {
		text = "," + text
	}
	return edit{n.end - 1, n.end - 1, text}
}
