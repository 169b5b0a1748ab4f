package tree

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear/policyfile"
)

// Python reads the settings in a module of Python, at whatever indentation: what is
// assigned to a name, or to an attribute or key of something called conf, config or
// settings; what update, config_from_object and Celery are called with; a dict that is
// returned, as "return"; and the arguments of decorators, as "@app.task" with the
// function's name as "def". x["a"] = 1 is a map x with the key a. A name that is assigned
// twice stands twice, since a condition may decide between the two.
//
// Values are literals: numbers and their products, texts, lists, dicts, timedelta. Of an
// expression that is none, the name that it begins with is the value. What is unpacked
// into a dict or a call has the key "**", and an argument without a name that is no
// literal has "*".
//
// It is no parser of Python: what is neither of these is skipped, and no text is faulty.
func Python(name string, data []byte) *Node {
	p := &pythonReader{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1, column: 1}
	p.root = newMap(policyfile.Position{File: name, Line: 1, Column: 1})
	for p.pos < len(p.data) {
		p.statement()
	}
	return p.root
}

// pythonReader goes through a module once. The place belongs to placed, which follows
// pos where a place is asked for.
type pythonReader struct {
	name         string
	data         []byte
	pos          int
	placed       int
	line, column int
	root         *Node
	decorators   []*Node // of the function that comes
}

// at is the position of pos.
func (p *pythonReader) at() policyfile.Position {
	for ; p.placed < p.pos; p.placed++ {
		if p.data[p.placed] == '\n' {
			p.line, p.column = p.line+1, 1
		} else if utf8.RuneStart(p.data[p.placed]) {
			p.column++
		}
	}
	return policyfile.Position{File: p.name, Line: p.line, Column: p.column}
}

// peek returns the byte at pos, or 0 behind the last.
func (p *pythonReader) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// space skips white space, comments and joined lines; and line ends too, inside of
// brackets or between statements.
func (p *pythonReader) space(lines bool) {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == ' ' || c == '\t' || c == '\f' || lines && (c == '\n' || c == '\r' || c == ';'):
			p.pos++
		case bytes.HasPrefix(p.data[p.pos:], []byte("\\\n")):
			p.pos += 2
		case bytes.HasPrefix(p.data[p.pos:], []byte("\\\r\n")):
			p.pos += 3
		case c == '#':
			for p.pos < len(p.data) && p.data[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

// word reads a name, or "".
func (p *pythonReader) word() string {
	start := p.pos
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c < utf8.RuneSelf && (p.pos == start || c < '0' || c > '9') {
			break
		}
		p.pos++
	}
	return string(p.data[start:p.pos])
}

// dotted reads names with dots between them.
func (p *pythonReader) dotted() string {
	start := p.pos
	for p.word() != "" && p.peek() == '.' {
		p.pos++
	}
	return string(p.data[start:p.pos])
}

// pythonBlocks begin a block, whose first statement may stand behind the colon.
var pythonBlocks = []string{"if", "elif", "else", "for", "while", "with", "try", "except", "finally", "class", "match", "case"}

// pythonOwners have settings as attributes and keys.
var pythonOwners = []string{"conf", "config", "settings"}

// pythonCalls hand settings over.
var pythonCalls = []string{"update", "config_from_object", "add_defaults", "from_mapping"}

// statement reads one statement, or skips it.
func (p *pythonReader) statement() {
	p.space(true)
	at, start := p.at(), p.pos
	if p.peek() == '@' {
		p.pos++
		p.decorator(at)
		return
	}
	path := p.target()
	switch first := path[0]; {
	case first == "async":
		return
	case first == "def":
		p.function()
		return
	case slices.Contains(pythonBlocks, first):
		p.decorators = nil
		p.skip(":")
		p.pos = min(p.pos+1, len(p.data))
		return
	case first == "return":
		if v := p.value(0); v.Map() {
			p.add([]string{first}, at, v)
		}
	case p.peek() == '(':
		p.call(path, at)
	case first != "" && p.assigned():
		p.add(settingOf(path), at, p.value(0))
	}
	p.skip(";\n")
	if p.pos == start {
		p.pos++ // nothing that belongs here
	}
}

// target reads what a statement begins with: names with dots between them, and keys in
// brackets. The first is "" where there is none.
func (p *pythonReader) target() []string {
	path := []string{p.word()}
	for path[0] != "" && path[0] != "return" {
		p.space(false)
		switch p.peek() {
		case '.':
			p.pos++
			path = append(path, p.word())
		case '[':
			p.pos++
			path = append(path, p.value(1).Text())
			p.skip("]")
			p.pos = min(p.pos+1, len(p.data))
		default:
			return path
		}
	}
	return path
}

// settingOf is the part of a path that names a setting.
func settingOf(path []string) []string {
	for i := len(path) - 2; i >= 0; i-- {
		if slices.Contains(pythonOwners, path[i]) {
			return path[i+1:]
		}
	}
	return path
}

// call reads a call that hands settings over.
func (p *pythonReader) call(path []string, at policyfile.Position) {
	last := len(path) - 1
	if last == 0 || !slices.Contains(pythonCalls, path[last]) {
		return
	}
	p.pos++
	all := p.arguments(0)
	unpacked(all)
	path = settingOf(path)
	if owner := path[:len(path)-1]; len(owner) > 0 && path[len(owner)] == "update" {
		p.add(owner, at, all)
		return
	}
	p.root.Pairs = append(p.root.Pairs, all.Pairs...)
}

// unpacked is for what takes dicts: an argument without a name is one.
func unpacked(arguments *Node) {
	for i := range arguments.Pairs {
		if arguments.Pairs[i].Key == "*" {
			arguments.Pairs[i].Key = "**"
		}
	}
}

// add adds a setting, whose path may lead into a dict.
func (p *pythonReader) add(path []string, at policyfile.Position, v *Node) {
	for i := min(len(path), maxDepth) - 1; i > 0; i-- {
		n := newMap(at)
		n.Pairs = []Pair{{path[i], at, v}}
		v = n
	}
	p.root.Pairs = append(p.root.Pairs, Pair{path[0], at, v})
}

// assigned moves behind the "=" of an assignment, over the type of the name.
func (p *pythonReader) assigned() bool {
	if p.peek() == ':' {
		p.skip("=\n")
	}
	if bytes.HasPrefix(p.data[p.pos:], []byte("|=")) { // a dict into another
		p.pos++
	}
	if p.peek() != '=' || p.pos+1 < len(p.data) && p.data[p.pos+1] == '=' {
		return false
	}
	p.pos++
	return true
}

// decorator reads the arguments of one.
func (p *pythonReader) decorator(at policyfile.Position) {
	target := p.dotted()
	arguments := newMap(at)
	if p.peek() == '(' {
		p.pos++
		arguments = p.arguments(0)
		arguments.At = at
	}
	p.root.Pairs = append(p.root.Pairs, Pair{"@" + target, at, arguments})
	p.decorators = append(p.decorators, arguments)
	p.skip(";\n")
}

// function gives the decorators above it the name of a function.
func (p *pythonReader) function() {
	p.space(false)
	name := &Node{At: p.at()}
	name.Value = p.word()
	for _, d := range p.decorators {
		d.Pairs = append(d.Pairs, Pair{"def", name.At, name})
	}
	p.decorators = nil
	p.skip(":")
	p.pos = min(p.pos+1, len(p.data))
}

// skip moves to the next of these characters that stands in no bracket, text or
// comment. A bracket that closes what was opened before, and the end of the line where
// none is open, end it too.
func (p *pythonReader) skip(until string) {
	depth := 0
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		switch {
		case c == '"' || c == '\'':
			p.text(false)
			continue
		case c == '#':
			p.space(false)
			continue
		case c == '\\':
			p.pos++ // joins the lines
		case depth == 0 && (c == '\n' || strings.IndexByte(until, c) >= 0):
			return
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth--; depth < 0 {
				return
			}
		}
		p.pos = min(p.pos+1, len(p.data))
	}
}
