package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/forbear-go/forbear/policyfile"
)

// maxDepth bounds values within values.
const maxDepth = 1000

// JSON parses one JSON value. It is strict where readers differ: comments and
// trailing commas are refused at their place, since the program that the file is for
// would not take them.
func JSON(name string, data []byte) (*Node, *policyfile.Fault) {
	if rest, marked := bytes.CutPrefix(data, []byte("\ufeff")); marked {
		data = rest // which programs skip, and the decoder does not
	}
	p := &jsonParser{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	p.dec.UseNumber()
	root, fault := p.value(0)
	if p.next(); fault == nil && p.pos < len(data) {
		fault = p.fault(errors.New("the file holds more than one value"))
	}
	return root, fault
}

// jsonParser follows the decoder's offset through the text, to know the lines.
type jsonParser struct {
	name         string
	data         []byte
	dec          *json.Decoder
	pos          int
	line, column int
}

// to moves the place on to an offset.
func (p *jsonParser) to(offset int) policyfile.Position {
	for p.pos < min(offset, len(p.data)) {
		_, size := utf8.DecodeRune(p.data[p.pos:])
		if p.column++; p.data[p.pos] == '\n' {
			p.line, p.column = p.line+1, 1
		}
		p.pos += size
	}
	return policyfile.Position{File: p.name, Line: p.line, Column: p.column}
}

// next moves to the token that comes next, over space and punctuation.
func (p *jsonParser) next() policyfile.Position {
	p.to(int(p.dec.InputOffset()))
	end := p.pos
	for end < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[end]) >= 0 {
		end++
	}
	return p.to(end)
}

// fault places an error of the decoder's.
func (p *jsonParser) fault(err error) *policyfile.Fault {
	at, message := p.next(), "not JSON: "+err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, message = p.to(len(p.data)), "not JSON: the file ends in the middle of a value"
	}
	// What the decoder says of a comment helps no one.
	if rest := p.data[p.pos:]; bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) {
		message = "not JSON: it has comments, which many programs refuse"
	}
	return &policyfile.Fault{Position: at, Message: message}
}

func (p *jsonParser) value(depth int) (*Node, *policyfile.Fault) {
	if depth > maxDepth {
		return nil, p.fault(fmt.Errorf("values are nested more than %d deep", maxDepth))
	}
	at := p.next()
	token, err := p.dec.Token()
	if err != nil {
		return nil, p.fault(err)
	}
	n := &Node{At: at}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = List
		if t == '{' {
			n.Kind = Map
		}
		for p.dec.More() {
			if fault := p.member(n, depth); fault != nil {
				return nil, fault
			}
		}
		if _, err := p.dec.Token(); err != nil {
			return nil, p.fault(err)
		}
		n.Twice = twice(n.Pairs)
	case string:
		n.Value = t
	case json.Number:
		n.Value = t.String()
	case bool:
		n.Value = strconv.FormatBool(t)
	}
	return n, nil
}

// member reads an item of a list, or a key with its value.
func (p *jsonParser) member(n *Node, depth int) *policyfile.Fault {
	if n.Kind == List {
		item, fault := p.value(depth + 1)
		n.Items = append(n.Items, item)
		return fault
	}
	at := p.next()
	token, err := p.dec.Token()
	if err != nil {
		return p.fault(err)
	}
	key, _ := token.(string) // as the decoder has seen to
	value, fault := p.value(depth + 1)
	n.Pairs = append(n.Pairs, Pair{key, at, value})
	return fault
}
