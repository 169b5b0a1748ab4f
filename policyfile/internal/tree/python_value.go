package tree

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
