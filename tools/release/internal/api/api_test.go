package api

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

const shop = `package shop

import "errors"

const Most = 3
type ID string
type Key[K comparable] struct{ Of K }
type Order struct {
	ID    ID
	Lines []string
	base
	note  string
}
type base struct{ Price int }
func (*base) Pay(amount int) error { return nil }
func (o Order) String() string { return "" }
func (o *Order) Hide() {}
type Point struct{ X, Y int }
type Store interface { Put(o *Order) error; Get(id ID) (*Order, bool) }
type Closed interface { A(); b() }
type Handler func(o Order)
type Alias = map[string]Order
type store struct{ Name string }
func (*store) Flush() {}
var ErrNone = errors.New("none")
func Open(name string, more ...func(*Order)) (*store, error) { return nil, nil }
func Map[K comparable, V any](m map[K]V, f func(V) V) {}
`

func checked(t *testing.T, source string) map[string]pkg {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "shop.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{Importer: importer.Default()}).Check("example.com/shop", set, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]pkg{p.Path(): {Package: p}}
}

// What breaks users is what the judge is here for: another version of it, or another
// one, has to know as much.
func TestBreaking(t *testing.T) {
	for _, c := range []struct{ name, old, new, breaking string }{
		{"a function that is gone", "func Map", "func mapped", "Map: removed"},
		{"a parameter", "Open(name string, ", "Open(name string, mode int, ", "Open: changed from"},
		{"the name of a parameter", "Put(o *Order)", "Put(order *Order)", ""},
		{"a result", "func(V) V)", "func(V) error)", "Map: changed from"},
		{"a method of an interface that others implement", "type Store interface { ", "type Store interface { Len() int; ", "Store.Len: added"},
		{"a method of one that no one else can", "A(); b()", "A(); b(); C()", ""},
		{"an interface that is closed", "(*Order, bool) }", "(*Order, bool); b() }", "Store.b: added unexported method"},
		{"the value of a constant", "Most = 3", "Most = 4", "Most: value changed from 3 to 4"},
		{"the type of a constant", "Most = 3", "Most int = 3", "Most: changed from untyped int to int"},
		{"a field that is gone", "Lines []string", "lines []string", "Order.Lines: removed"},
		{"a field of an embedded type", "Price int", "price int", "Order.Price: removed"},
		{"the type of a field", "ID    ID", "ID    string", "Order.ID: changed from ID to string"},
		{"a new field", "note  string", "Note string", ""},
		{"a struct that was comparable", "X, Y int", "X, Y int; z []int", "Point: old is comparable, new is not"},
		{"an underlying type", "type ID string", "type ID int", "ID: changed from string to int"},
		{"another alias", "map[string]Order", "map[string]*Order", "Alias: changed from"},
		{"an alias that is a type", "type Alias = ", "type Alias ", "Alias: changed from"},
		{"a type that has moved behind an alias", "type Point struct{", "type Point = point; type point struct{", ""},
		{"a pointer receiver", "(o Order) String", "(o *Order) String", "Order.String: removed"},
		{"a value receiver", "(o *Order) Hide", "(o Order) Hide", ""},
		{"a method of a type that is not exported", ") Flush()", ") flush()", "(*store).Flush: removed"},
		{"a narrower constraint", "V any]", "V comparable]", "Map: changed from"},
		{"the constraint of a type", "type Key[K comparable]", "type Key[K interface{ comparable; String() string }]", "Key: changed from"},
		{"the name of a type parameter", "[K comparable, V any](m map[K]V, f func(V) V)", "[A comparable, B any](m map[A]B, f func(B) B)", ""},
		{"the type of a variable", `= errors.New("none")`, `*Order`, "ErrNone: changed from error to *Order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := strings.Replace(shop, c.old, c.new, 1)
			if after == shop {
				t.Fatalf("no %q", c.old)
			}
			if !strings.Contains(after, "errors.") {
				after = strings.Replace(after, "import \"errors\"\n", "", 1)
			}
			got := compare(checked(t, shop), checked(t, after)).Breaking
			want := c.breaking != ""
			if (len(got) > 0) != want || want && !strings.Contains(strings.Join(got, "\n"), "example.com/shop: "+c.breaking) {
				t.Errorf("got %q, want %q", got, c.breaking)
			}
		})
	}
}

// repository makes one of two modules, of which the second is experimental.
func repository(t *testing.T) *workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	const head = "// Package p.\n//\n// " + Mark + "\npackage p\n\n"
	write(t, root, map[string]string{
		"go.work":              "go 1.26.0\n\nuse (\n\t.\n\t./young\n)\n\nreplace (\n\t" + workspace.Prefix + " v0.0.0 => ./\n\t" + workspace.Prefix + "/young v0.0.0 => ./young\n)\n",
		"go.mod":               "module " + workspace.Prefix + "\n\ngo 1.26.0\n",
		"a.go":                 "package forbear\n\nfunc F() {}\n\nfunc G() {}\n",
		"settled/a.go":         "package settled\n\nfunc F() {}\n",
		"gone/a.go":            "package gone\n",
		"internal/hidden/a.go": "package hidden\n\nfunc F() {}\n",
		"young/go.mod":         "module " + workspace.Prefix + "/young\n\ngo 1.26.0\n\nrequire " + workspace.Prefix + " v0.0.0\n",
		"young/p/a.go":         head + "import \"" + workspace.Prefix + "\"\n\nfunc F() { forbear.F() }\n",
		"young/q/a.go":         strings.Replace(head, "package p", "package q", 1),
		"young/cmd/a.go":       "package main\n\nfunc F() {}\n\nfunc main() {}\n",
	})
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"config", "user.name", "who"},
		{"config", "user.email", "who@example.com"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "one"},
		{"tag", "v0.1.0"},
	} {
		if _, err := run.Git(t.Context(), root, args...); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSince(t *testing.T) {
	w := repository(t)
	since := func() Changes {
		t.Helper()
		c, err := Since(t.Context(), w, "v0.1.0")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := since(); len(c.Breaking)+len(c.Experimental)+len(c.Other) > 0 {
		t.Errorf("of nothing came %+v", c)
	}
	if err := os.RemoveAll(filepath.Join(w.Root, "gone")); err != nil {
		t.Fatal(err)
	}
	write(t, w.Root, map[string]string{
		"a.go":                 "package forbear\n\nfunc F() {}\n",
		"new/a.go":             "package fresh\n",
		"settled/a.go":         "// Package settled.\n//\n// " + Mark + "\npackage settled\n\nfunc F() {}\n",
		"internal/hidden/a.go": "package hidden\n",
		"young/p/a.go":         "// Package p.\n//\n// " + Mark + "\npackage p\n",
		"young/q/a.go":         "package q\n",
		"young/cmd/a.go":       "package main\n\nfunc main() {}\n",
	})
	c := since()
	for _, part := range []struct{ got, want []string }{
		{c.Breaking, []string{": G: removed", "/gone: removed", "/settled: experimental, and was not"}},
		{c.Experimental, []string{"/young/p: F: removed"}},
		{c.Other, []string{"/young/q: experimental no longer", "/new: added"}},
	} {
		for i := range part.want {
			part.want[i] = workspace.Prefix + part.want[i]
		}
		if !slices.Equal(part.got, part.want) {
			t.Errorf("got %q, want %q", part.got, part.want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Root, "bin", "api")); !os.IsNotExist(err) {
		t.Errorf("the earlier checkout is left: %v", err)
	}
	if _, err := Since(t.Context(), w, "v0.2.0"); err == nil || !strings.Contains(err.Error(), "git fetch --tags") {
		t.Errorf("a version that is not there: %v", err)
	}
}

// A breaking change needs its line, and a line its change.
func TestMeant(t *testing.T) {
	root := t.TempDir()
	none, one := Changes{Other: []string{"a: added"}}, Changes{Breaking: []string{"a: F: removed"}}
	step := func(what string, c Changes, meant bool) {
		t.Helper()
		if err := c.Meant(root); (err == nil) != meant {
			t.Errorf("%s: got %v", what, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(none.Write(root))
	step("no change", none, true)
	step("a change", one, false)
	must(one.Write(root))
	step("a change with its line", one, true)
	step("a line without its change", none, false)
	must(none.Write(root))
	step("neither", none, true)
	if _, err := os.Stat(filepath.Join(root, File)); !os.IsNotExist(err) {
		t.Errorf("an empty file is left: %v", err)
	}
}
