package tree

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
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

// text reads a text from its opening quote on.
func (p *pythonReader) text(raw bool) string {
	quote := p.data[p.pos : p.pos+1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(p.data[p.pos:], triple) {
		quote = triple
	}
	p.pos += len(quote)
	var b strings.Builder
	for p.pos < len(p.data) && !bytes.HasPrefix(p.data[p.pos:], quote) {
		if p.data[p.pos] == '\\' && p.pos+1 < len(p.data) {
			if raw {
				b.WriteByte('\\')
			}
			p.pos++
		} else if p.data[p.pos] == '\n' && len(quote) == 1 {
			return b.String() // it has no end
		}
		b.WriteByte(p.data[p.pos])
		p.pos++
	}
	p.pos = min(p.pos+len(quote), len(p.data))
	return b.String()
}

// arguments reads those of a call, behind its bracket, and moves behind the one that
// closes it: the named ones, and those in a dict that is handed over.
func (p *pythonReader) arguments(depth int) *Node {
	n := newMap(p.at())
	for {
		p.space(true)
		at, start := p.at(), p.pos
		switch p.peek() {
		case 0:
			return n
		case ')':
			p.pos++
			return n
		case ',':
			p.pos++
			continue
		}
		stars := p.stars()
		key, named := p.word(), p.pos
		p.space(true)
		if key != "" && p.assigned() {
			n.Pairs = append(n.Pairs, Pair{key, at, p.value(depth + 1)})
		} else {
			p.pos = named - len(key)
			switch v, text := p.value(depth+1), p.data[start] == '"' || p.data[start] == '\''; {
			case v.Map() && stars != "*":
				n.Pairs = append(n.Pairs, v.Pairs...)
			case stars == "**":
				n.Pairs = append(n.Pairs, Pair{stars, at, &Node{At: at}})
			case !text:
				n.Pairs = append(n.Pairs, Pair{"*", at, &Node{At: at}})
			}
		}
		p.next(start)
	}
}

// stars reads those that unpack what follows.
func (p *pythonReader) stars() string {
	start := p.pos
	for p.peek() == '*' {
		p.pos++
	}
	return string(p.data[start:p.pos])
}

// next moves to the comma or to the bracket that ends an item; line ends count for
// nothing. It moves on in any case.
func (p *pythonReader) next(start int) {
	for {
		p.skip(",")
		if c := p.peek(); c != '\n' {
			break
		}
		p.pos++
	}
	if p.pos == start && p.pos < len(p.data) {
		p.pos++
	}
}

// value reads an expression, or the beginning of one.
func (p *pythonReader) value(depth int) *Node {
	p.space(depth > 0)
	n := &Node{At: p.at()}
	if depth > maxDepth {
		return n
	}
	switch c := p.peek(); {
	case c == '{':
		p.pos++
		p.dict(n, depth)
	case c == '[' || c == '(':
		p.pos++
		n = p.list(n, depth, c)
	case c == '"' || c == '\'':
		n.Value = p.texts(false, depth > 0)
	case c == '-' || c == '.' || c >= '0' && c <= '9':
		n.Value = p.number()
	default:
		literal := false
		if n, literal = p.named(n, depth); !literal {
			return n
		}
	}
	// What goes on is no literal, whatever it began with.
	p.space(depth > 0)
	switch {
	case !p.goesOn():
	case n.Kind == Map:
		n.Pairs = append(n.Pairs, Pair{"**", n.At, &Node{At: n.At}})
	case n.Kind == Scalar:
		n = &Node{Value: "an expression", At: n.At}
	}
	return n
}

// goesOn reports whether an operator follows: a sign, or a word such as "if" and "or".
func (p *pythonReader) goesOn() bool {
	c := p.peek()
	return strings.IndexByte("+-*/%<>=&|^.([", c) >= 0 || c >= 'a' && c <= 'z'
}

// texts reads texts that stand side by side, which are one; inside of brackets, on
// several lines too.
func (p *pythonReader) texts(raw, within bool) string {
	var all strings.Builder
	for {
		all.WriteString(p.text(raw))
		p.space(within)
		if c := p.peek(); c != '"' && c != '\'' {
			return all.String()
		}
	}
}

// number reads a number, or a product of numbers.
func (p *pythonReader) number() string {
	product := 1.0
	for {
		start := p.pos
		for strings.IndexByte("-.0123456789_eE", p.peek()) >= 0 {
			p.pos++
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(string(p.data[start:p.pos]), "_", ""), 64)
		if err != nil {
			return "an expression"
		}
		product *= v
		p.space(false)
		rest := p.data[p.pos:]
		if len(rest) < 2 || rest[0] != '*' || rest[1] == '*' {
			return strconv.FormatFloat(product, 'f', -1, 64)
		}
		p.pos++
		p.space(false)
	}
}

// named reads what begins with a name: a constant, a prefixed text, a call. literal is
// false for what only running the module would tell.
func (p *pythonReader) named(n *Node, depth int) (found *Node, literal bool) {
	name := p.dotted()
	if c := p.peek(); (c == '"' || c == '\'') && len(name) <= 2 {
		if n.Value = p.texts(strings.ContainsAny(name, "rR"), depth > 0); strings.ContainsAny(name, "fF") {
			n.Value = "an expression"
		}
		return n, true
	}
	switch name {
	case "True", "False":
		n.Value = strings.ToLower(name)
		return n, true
	case "None":
		n.Value = name
		return n, true
	case "":
		n.Value = "an expression"
		return n, false
	}
	n.Value = name
	if p.peek() != '(' {
		return n, false
	}
	p.pos++
	arguments := p.arguments(depth)
	switch {
	case name == "dict":
		arguments.At = n.At
		unpacked(arguments)
		return arguments, true
	case name == "Celery" || strings.HasSuffix(name, ".Celery"):
		p.root.Pairs = append(p.root.Pairs, slices.DeleteFunc(arguments.Pairs, func(q Pair) bool { return q.Key == "*" })...)
	case name == "timedelta" || strings.HasSuffix(name, ".timedelta"):
		if all, ok := timedelta(arguments); ok {
			n.Value = strconv.FormatFloat(all.Seconds(), 'f', -1, 64)
			// Its seconds are what it is read as.
			if rest := []byte(".total_seconds()"); bytes.HasPrefix(p.data[p.pos:], rest) {
				p.pos += len(rest)
			}
			return n, true
		}
	}
	return n, false
}

// timedelta adds up the arguments of datetime.timedelta.
func timedelta(n *Node) (sum time.Duration, ok bool) {
	units := map[string]float64{
		"weeks": 7 * 24 * 3600, "days": 24 * 3600, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 1e-3, "microseconds": 1e-6,
	}
	total := 0.0
	for _, p := range n.Pairs {
		v, read := p.Value.Number()
		unit, known := units[p.Key]
		if !read || !known {
			return 0, false
		}
		total += v * unit
	}
	const most = 100 * 365 * 24 * 3600 // a century
	return time.Duration(min(max(total, 0), most) * float64(time.Second)), len(n.Pairs) > 0
}

// dict reads the pairs of a dict, or the items of a set, up to the closing bracket. What
// is unpacked into it has the key "**". Of a key that stands twice, the last one counts.
func (p *pythonReader) dict(n *Node, depth int) {
	n.Kind = Map
	keys := map[string]int{}
	for {
		p.space(true)
		at, start := p.at(), p.pos
		switch p.peek() {
		case 0:
			return
		case '}', ')', ']':
			p.pos++
			return
		case ',':
			p.pos++
			continue
		case '*':
			n.Pairs = append(n.Pairs, Pair{"**", at, &Node{At: at}})
			p.next(start)
			continue
		}
		text := p.peek() == '"' || p.peek() == '\''
		key := p.value(depth + 1)
		p.space(true)
		if p.peek() == ':' {
			p.pos++
			pair := Pair{key.Text(), at, p.value(depth + 1)}
			if i, twice := keys[pair.Key]; twice && text {
				n.Pairs[i] = pair
			} else {
				keys[pair.Key] = len(n.Pairs)
				n.Pairs = append(n.Pairs, pair)
			}
			p.space(true)
		}
		if bytes.HasPrefix(p.data[p.pos:], []byte("for ")) {
			n.Pairs = append(n.Pairs, Pair{"**", at, &Node{At: at}})
		}
		p.next(start)
	}
}

// list reads items up to the closing bracket. One item in round brackets is the item.
func (p *pythonReader) list(n *Node, depth int, bracket byte) *Node {
	n.Kind = List
	commas := 0
	for {
		p.space(true)
		start := p.pos
		switch p.peek() {
		case ')', ']', '}', 0:
			p.pos = min(p.pos+1, len(p.data))
			if bracket == '(' && commas == 0 && len(n.Items) == 1 {
				return n.Items[0]
			}
			return n
		case ',':
			p.pos++
			commas++
			continue
		}
		n.Items = append(n.Items, p.value(depth+1))
		p.next(start)
	}
}
