//forbear:plain files are read on one goroutine
package tree

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// show writes a tree on one line, with the line and column of each scalar.
func show(n *Node) string {
	switch n.Kind {
	case Map:
		var all []string
		for _, p := range n.Pairs {
			all = append(all, p.Key+": "+show(p.Value))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case List:
		var all []string
		for _, item := range n.Items {
			all = append(all, show(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return fmt.Sprintf("%s@%d:%d", n.Value, n.At.Line, n.At.Column)
}

// Every notation becomes the same tree, with the places of the file.
func TestNotations(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		parse            func(string, []byte) (*Node, error)
	}{
		{"tables", "[a.b]\nc = 1\n[a.d]\ne = \"f\"\n", "{a: {b: {c: 1@2:5}, d: {e: f@4:5}}}", TOML},
		{"lists of tables", "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = true\n", "{a: [{b: 1@2:5}, {b: 2@4:5, c: {d: true@6:5}}]}", TOML},
		{"dotted and in line", "a.b = {c = [\"d\", \"e\"]}\n", "{a: {b: {c: [d@1:13, e@1:18]}}}", TOML},
		{"assignments", "a = \"b\"\nc = [1, \"d\"]\n", "{a: b@1:5, c: [1@2:6, d@2:9]}", HCL},
		{"blocks", "a {\n  b = true\n}\n", "{a: {b: true@2:7}}", HCL},
		{"blocks of one name", "a {\n  b = 1\n}\na {\n  b = 2\n}\n", "{a: [{b: 1@2:7}, {b: 2@5:7}]}", HCL},
		{"labels", "a \"b\" {\n  c = 1\n}\n", "{a: {b: {c: 1@2:7}}}", HCL},
		{"texts over lines", "a = <<EOF\nb\nEOF\n", "{a: b\n@1:5}", HCL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := tt.parse("f", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(root); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// What cannot be parsed is a fault with a place, however deep it is.
func TestUnparsed(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		parse            func(string, []byte) (*Node, error)
	}{
		{"no value", "a = 1\nb = \n", "f:2:5: not TOML", TOML},
		{"deep lists", "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "not TOML: too many", TOML},
		{"deep keys", strings.Repeat("a.", 5000) + "a = 1", "not TOML: too many", TOML},
		{"deep headers", "[" + strings.Repeat("a.", 5000) + "a]", "not TOML: too many", TOML},
		{"version 2", "a = b.c\n", "f:1:", HCL},
		{"deep blocks", strings.Repeat("a {", 5000), "not HCL: more than", HCL},
		{"no end", "a = \"b", "not HCL", HCL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.parse("f", []byte(tt.text))
			if _, ok := errors.AsType[*policyfile.Fault](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"numRetries", "num_retries", true},
		{"NumRetries", "NUM-RETRIES", true},
		{"retries", "retriesx", false},
		{"retries_", "retries", true},
		{"a", "b", false},
	} {
		if got := Same(tt.a, tt.b); got != tt.want {
			t.Errorf("Same(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

// No input makes the parsers panic.
func FuzzNotations(f *testing.F) {
	for _, s := range []string{"[a]\nb = {c = [1]}\n", "a \"b\" {\n c = <<E\nd\nE\n}\n", "a.b.c = 1", "a = [{ b = 1 }, 2]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func(string, []byte) (*Node, error){TOML, HCL} {
			root, err := parse("f", data)
			if err != nil {
				continue
			}
			root.Walk(func(n *Node) bool {
				if n.At.Line < 1 || n.At.Column < 1 {
					t.Errorf("a node at %v", n.At)
				}
				return true
			})
		}
	})
}
