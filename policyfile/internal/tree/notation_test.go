package tree

import (
	"fmt"
	"strings"
	"testing"
)

// outline writes a tree in a line, with the lines of the scalars.
func outline(n *Node) string {
	switch {
	case n == nil:
		return "-"
	case n.Kind == Scalar:
		return fmt.Sprintf("%q@%d:%d", n.Value, n.At.Line, n.At.Column)
	}
	var parts []string
	for _, p := range n.Pairs {
		parts = append(parts, p.Key+":"+outline(p.Value))
	}
	for _, item := range n.Items {
		parts = append(parts, outline(item))
	}
	if n.Kind == List {
		return "[" + strings.Join(parts, " ") + "]"
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func TestProperties(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nested", "a.b=1\na.c = 2\n", `{a:{b:"1"@1:5 c:"2"@2:7}}`},
		{"separators and comments", "# a=0\n! b\n  a : x y \nb\tz\nc\n", `{a:"x y"@3:7 b:"z"@4:3 c:""@5:2}`},
		{"continued", "a=1,\\\n   2\nb=c\\\\\nd=e", `{a:"1,2"@1:3 b:"c\\"@3:3 d:"e"@4:3}`},
		{"escapes", `a\:b\=c=\u0041\t\u00`, `{a:b=c:"A\tu00"@1:9}`},
		{"lists", "a[1].b=2\na[0].b=1\na[0].c=3\n", `{a:[{b:"1"@2:8 c:"3"@3:8} {b:"2"@1:8}]}`},
		{"keys in brackets", "a.[b.c].d=1\na[e.f]=2\n", `{a:{b.c:{d:"1"@1:11} e.f:"2"@2:8}}`},
		{"the last one counts", "a=1\na=2\n", `{a:"2"@2:3}`},
		{"a value and its parts", "a=1\na.b=2\n", `{a:{b:"2"@2:5}}`},
		{"no end of a line, and CR", "a=1\r\nb=2\r\n", `{a:"1"@1:3 b:"2"@2:3}`},
		{"odd keys", "..=1\n=2\na[=3\n", `{..:"1"@1:4 :"2"@2:2 a[:"3"@3:4}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			roots := Properties("f", []byte(tt.text))
			if len(roots) != 1 || outline(roots[0]) != tt.want {
				t.Errorf("got %d roots, %s, want %s", len(roots), outline(roots[0]), tt.want)
			}
		})
	}
	if roots := Properties("f", []byte("a=1\n#---\nb=2\n!---\n\n")); len(roots) != 2 || outline(roots[1]) != `{b:"2"@3:3}` {
		t.Errorf("documents: got %v", roots)
	}
}

func TestINI(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"sections", "# c\n[default]\na = 1 # one\nb=#2\n\n[profile x] ; c\na=3\n", `{default:{a:"1"@3:5 b:"#2"@4:3} profile x:{a:"3"@7:3}}`},
		{"settings within settings", "[a]\ns3 =\n  b = 1\n  c = 2\nd = 3\n", `{a:{s3:""@2:5 d:"3"@5:5}}`},
		{"a section of two parts", "[a]\nb=1\n[c]\n[a]\nd=2\n", `{a:{b:"1"@2:3 d:"2"@5:3} c:{}}`},
		{"indented as a whole", "\n    [a]\n    b = 1\n", `{a:{b:"1"@3:9}}`},
		{"a continued value", "[a]\nb = 1\n  more\nc = 2\n", `{a:{b:"1"@2:5 c:"2"@4:5}}`},
		{"JSON", "[1, 2]\n", "-"},
		{"JSON of objects", "[\n{\"a\": 1}\n]\n", "-"},
		{"no section", "a = 1\n", "-"},
		{"a line of something else", "[a]\nb\n", "-"},
		{"nothing", "# a\n", "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, ok := INI("f", []byte(tt.text))
			if !ok {
				root = nil
			}
			if got := outline(root); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if root, _ := INI("f", []byte("[a]\nb=1\nb=2\n")); root.Pairs[0].Value.Twice.Line != 3 {
		t.Error("a key that appears twice is not seen")
	}
}

func TestDotted(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"merged", "a.b: {c: 1}\na:\n  b:\n    d: 2\n", `{a:{b:{c:"1"@1:10 d:"2"@4:8}}}`},
		{"within lists", "a:\n  - b.c: 1\n", `{a:[{b:{c:"1"@2:10}}]}`},
		{"aliases", "x: &x {a.b: 1}\ny: *x\nz: {<<: *x, a.c: 2}\n", `{x:{a:{b:"1"@1:13}} y:{a:{b:"1"@1:13}} z:{a:{c:"2"@3:18 b:"1"@1:13}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			roots, err := YAML("f", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(Dotted(roots[0])); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	roots, _ := YAML("f", []byte("Max-Retry_Attempts: {a: 1}"))
	if got := outline(roots[0].Fold("maxRetryAttempts", "A")); got != `"1"@1:25` {
		t.Errorf("got %s", got)
	}
}

// No text makes the readers of lines panic, and all that they find has a place.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"a.b[0].c=1\n#---\na.b=\\u00", "[a]\nb =\n  c = 1 # d\n[a]\n", "a[99999999999]=1\na.[b.c].d : 2 \\\n  3\n", "[[]]\n[a]]\n", "\ufeffa=1\n\fb 2",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		roots := Properties("f", data)
		if root, ok := INI("f", data); ok {
			roots = append(roots, root, Dotted(root))
		}
		if more, err := YAML("f", data); err == nil {
			for _, root := range more {
				roots = append(roots, Dotted(root))
			}
		}
		for _, root := range roots {
			root.Walk(func(n *Node) bool {
				if n.At.Line < 1 || n.At.Column < 1 || n.At.File != "f" {
					t.Errorf("a node at %+v", n.At)
				}
				return true
			})
		}
	})
}

// Programs skip a mark of the byte order.
func TestByteOrderMark(t *testing.T) {
	if root, err := JSON("f", []byte("\ufeff{\"a\": 1}")); err != nil || outline(root) != `{a:"1"@1:7}` {
		t.Errorf("got %s, %v", outline(root), err)
	}
}
