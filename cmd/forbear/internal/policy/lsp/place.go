package lsp

import "strings"

// outline is the keys of a document, as far as its lines tell them. It is read
// without a parser of YAML: while a key is written, the text is seldom YAML. What
// indentation and brackets do not tell, such as an alias, it does not know.
type outline struct {
	nodes []node // the first is the document
	block []level
	flow  []frame
	// literal is the indentation of the key whose value is a block of text, or -1.
	literal int
	at      cursor
}

// node is a key, or an item of a list.
type node struct {
	parent           int
	name             string // listItem of an item
	line, start, end int    // of the key, in bytes
}

// listItem is the name of an item in a path.
const listItem = "[]"

// level is a node that lines with more indentation belong to.
type level struct{ indent, node int }

// frame is an open bracket. key is the node that a value belongs to, or -1 where a
// key is to come.
type frame struct {
	bracket   byte
	node, key int
}

// cursor is where the text ends that was read so far.
type cursor struct {
	node  int  // whose key or value comes next
	value bool // a value of the node, and not a key in it
	start int  // of what is written there already, in bytes
}

// outlined reads the lines. The cursor of the outline is at the end of the last.
func outlined(lines []string) *outline {
	o := &outline{nodes: []node{{parent: -1}}, literal: -1}
	for n, text := range lines {
		o.line(n, text)
	}
	return o
}

// path returns the names from the document to a node.
func (o *outline) path(n int) []string {
	var reversed []string
	for ; n > 0; n = o.nodes[n].parent {
		reversed = append(reversed, o.nodes[n].name)
	}
	path := make([]string, len(reversed))
	for i, name := range reversed {
		path[len(path)-1-i] = name
	}
	return path
}

func (o *outline) add(parent int, name string, line, start, end int) int {
	o.nodes = append(o.nodes, node{parent, name, line, start, end})
	return len(o.nodes) - 1
}

// line reads one line.
func (o *outline) line(n int, text string) {
	if len(o.flow) > 0 {
		o.inFlow(n, text, 0)
		return
	}
	at := skipSpace(text, 0)
	if at == len(text) || text[at] == '#' {
		// The cursor may stand on an empty line: its column says where.
		o.at = cursor{node: o.above(at), start: at}
		if o.literal >= 0 && at > o.literal {
			o.at = cursor{node: o.above(at), value: true, start: at}
		}
		return
	}
	if o.literal >= 0 && at > o.literal {
		o.at = cursor{node: o.above(at), value: true, start: at}
		return
	}
	o.literal = -1
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		o.block, o.at = nil, cursor{}
		return
	}
	for text[at] == '-' && (at+1 == len(text) || text[at+1] == ' ') {
		o.close(at, true)
		o.block = append(o.block, level{at, o.add(o.top(), listItem, n, at, at+1)})
		if at = skipSpace(text, at+1); at == len(text) {
			o.at = cursor{node: o.top(), start: at}
			return
		}
	}
	o.entry(n, text, at)
}

// entry reads a key with its value, or a value alone.
func (o *outline) entry(n int, text string, at int) {
	end, colon := keyAt(text, at)
	if colon < 0 {
		o.at = cursor{node: o.above(at), start: at}
		if text[at] == '{' || text[at] == '[' {
			o.inFlow(n, text, at)
		}
		return
	}
	o.close(at, false)
	key := o.add(o.top(), unquoted(text[at:end]), n, at, end)
	o.block = append(o.block, level{at, key})
	value := skipSpace(text, colon+1)
	for value < len(text) && (text[value] == '&' || text[value] == '!') { // an anchor, or a tag
		for value < len(text) && text[value] != ' ' {
			value++
		}
		value = skipSpace(text, value)
	}
	o.at = cursor{node: key, value: true, start: value}
	switch {
	case value == len(text):
	case text[value] == '|' || text[value] == '>':
		o.literal = at
	case text[value] == '{' || text[value] == '[':
		o.inFlow(n, text, value)
	}
}

// close ends the levels that a line of that indentation does not belong to. An item
// may stand as far in as the key of its list.
func (o *outline) close(indent int, item bool) {
	for len(o.block) > 0 {
		last := o.block[len(o.block)-1]
		if last.indent < indent || item && last.indent == indent && o.nodes[last.node].name != listItem {
			return
		}
		o.block = o.block[:len(o.block)-1]
	}
}

func (o *outline) top() int {
	if len(o.block) == 0 {
		return 0
	}
	return o.block[len(o.block)-1].node
}

// above is the node that a key of that indentation would belong to.
func (o *outline) above(indent int) int {
	for i := len(o.block) - 1; i >= 0; i-- {
		if o.block[i].indent < indent {
			return o.block[i].node
		}
	}
	return 0
}

// inFlow reads what stands in brackets, up to the last of them or the line's end.
func (o *outline) inFlow(n int, text string, at int) {
	for {
		at = skipSpace(text, at)
		if len(o.flow) > 0 {
			f := o.flow[len(o.flow)-1]
			o.at = cursor{node: f.node, start: at}
			if f.key >= 0 {
				o.at = cursor{node: f.key, value: true, start: at}
			}
		}
		if at == len(text) || text[at] == '#' {
			return
		}
		switch c := text[at]; c {
		case '{', '[':
			o.open(n, at, c)
			at++
		case '}', ']':
			o.flow = o.flow[:len(o.flow)-1]
			if at++; len(o.flow) == 0 {
				o.at = cursor{node: o.at.node, value: true, start: at}
				return
			}
		case ',':
			f := &o.flow[len(o.flow)-1]
			if f.key = -1; f.bracket == '[' {
				f.key = o.add(f.node, listItem, n, at, at)
			}
			at++
		default:
			if at = o.token(n, text, at); at == len(text) && text[at-1] != ':' {
				return // the cursor is in this word, and o.at at its start
			}
		}
	}
}

// open opens a bracket.
func (o *outline) open(n, at int, bracket byte) {
	inside := o.at.node
	f := frame{bracket: bracket, node: inside, key: -1}
	if bracket == '[' {
		f.key = o.add(inside, listItem, n, at, at)
	}
	o.flow = append(o.flow, f)
}

// token reads a word in brackets, and returns where the next begins. A word before a
// colon is a key.
func (o *outline) token(n int, text string, at int) int {
	f := &o.flow[len(o.flow)-1]
	end, colon := keyAt(text, at)
	if colon < 0 || f.key >= 0 {
		return max(tokenEnd(text, at), at+1)
	}
	f.key = o.add(f.node, unquoted(text[at:end]), n, at, end)
	return colon + 1
}
