package tree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/hcl/ast"
	"github.com/hashicorp/hcl/hcl/parser"
	"github.com/hashicorp/hcl/hcl/token"

	"github.com/forbear-go/forbear/policyfile"
)

// HCL parses a file in version 1 of the language, as Consul reads its configuration
// entries. Blocks of one name become a list. An error is a [*policyfile.Fault].
func HCL(name string, data []byte) (root *Node, err error) {
	h := hclReader{name, keyIndex{}}
	// The parser descends without a bound, and panics where a scanner is at a loss.
	if nested(data) > maxDepth {
		return nil, h.fault(token.Pos{}, "more than "+strconv.Itoa(maxDepth)+" blocks within each other")
	}
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, h.fault(token.Pos{}, fmt.Sprint(p))
		}
	}()
	file, err := parser.Parse(data)
	if err != nil {
		at, message := token.Pos{}, err.Error()
		if e, ok := errors.AsType[*parser.PosError](err); ok {
			at, message = e.Pos, e.Err.Error()
		}
		return nil, h.fault(at, message)
	}
	return h.node(file.Node), nil
}

// hclReader converts the nodes of one file.
type hclReader struct {
	name string
	keys keyIndex
}

func (h hclReader) at(p token.Pos) policyfile.Position {
	return policyfile.Position{File: h.name, Line: max(p.Line, 1), Column: max(p.Column, 1)}
}

func (h hclReader) fault(at token.Pos, message string) error {
	return &policyfile.Fault{Position: h.at(at), Message: "not HCL: " + message}
}

func (h hclReader) node(n ast.Node) *Node {
	switch n := n.(type) {
	case *ast.ObjectType:
		out := h.node(n.List)
		out.At = h.at(n.Lbrace)
		return out
	case *ast.ObjectList:
		out := &Node{Kind: Map, At: h.at(token.Pos{})}
		for _, item := range n.Items {
			h.item(out, item)
		}
		out.Twice = twice(out.Pairs)
		return out
	case *ast.ListType:
		out := &Node{Kind: List, At: h.at(n.Lbrack)}
		for _, item := range n.List {
			out.Items = append(out.Items, h.node(item))
		}
		return out
	case *ast.LiteralType:
		return &Node{Value: literal(n.Token), At: h.at(n.Token.Pos)}
	}
	return &Node{At: h.at(token.Pos{})}
}

// item adds a key with its value. A block with labels is a map within a map for
// each, and a second block of a name makes a list of the two.
func (h hclReader) item(n *Node, item *ast.ObjectItem) {
	for i, key := range item.Keys {
		name, at := literal(key.Token), h.at(key.Token.Pos)
		if i < len(item.Keys)-1 {
			n = h.keys.into(n, name, at)
			continue
		}
		value := h.node(item.Val)
		if known := h.keys.get(n, name); known != nil && value.Kind == Map && !item.Assign.IsValid() {
			if known.Kind != List {
				first := *known
				*known = Node{Kind: List, Items: []*Node{&first}, At: known.At}
			}
			known.Items = append(known.Items, value)
			return
		}
		h.keys.add(n, Pair{name, at, value})
	}
}

// literal is the text of a token without its quotes.
func literal(t token.Token) string {
	switch t.Type {
	case token.STRING:
		if s, err := strconv.Unquote(t.Text); err == nil {
			return s
		}
		return strings.Trim(t.Text, `"`)
	case token.HEREDOC:
		s, _ := t.Value().(string)
		return s
	}
	return t.Text
}

// nested is the depth of brackets in a text, wherever they stand.
func nested(data []byte) (most int) {
	depth := 0
	for _, c := range data {
		switch c {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return most
}
