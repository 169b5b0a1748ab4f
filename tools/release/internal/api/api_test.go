package api

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const shop = `package shop

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
func (o *Order) hidden() {}
type Store interface { Put(o *Order) error; Get(id ID) (*Order, bool) }
type Closed interface { A(); b() }
type Handler func(o Order)
type Alias = map[ID]Order
var ErrNone error
func Open(name string, more ...func(*Order)) (Store, error) { return nil, nil }
func Map[K comparable, V any](m map[K]V, f func(V) V) {}
`

func record(t *testing.T, source string) Record {
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
	var r Record
	for _, line := range exported(p) {
		r.Lines = append(r.Lines, ".: "+line)
	}
	return r
}

func TestExported(t *testing.T) {
	want := []string{
		".: const Most untyped int = 3",
		".: func Map[K comparable, V any](map[K]V, func(V) V)",
		".: func Open(string, ...func(*Order)) (Store, error)",
		".: method (*Order) Pay(int) error",
		".: method (Order) String() string",
		".: type Alias = map[ID]Order",
		".: type Closed interface { unexported methods }",
		".: type Closed interface, A()",
		".: type Handler func(Order)",
		".: type ID is comparable",
		".: type ID string",
		".: type Key[K comparable] struct",
		".: type Key struct, Of K",
		".: type Order struct",
		".: type Order struct, ID ID",
		".: type Order struct, Lines []string",
		".: type Store interface { Get(ID) (*Order, bool); Put(*Order) error }",
		".: var ErrNone error",
	}
	got := record(t, shop).Lines
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		gone, growth   int
	}{
		{"the name of a parameter", "Put(o *Order)", "Put(order *Order)", 0, 0},
		{"a method of an interface that others implement", "type Store interface { ", "type Store interface { Len() int; ", 1, 1},
		{"a method of one that no one else can", "A(); b()", "A(); b(); C()", 0, 1},
		{"a field", "note  string", "Note string", 0, 1},
		{"a field that makes a type incomparable", "type ID string", "type ID []string", 2, 1},
		{"a parameter", "Open(name string, ", "Open(name string, mode int, ", 1, 1},
		{"a pointer receiver", "(o Order) String", "(o *Order) String", 1, 1},
		{"a function", "func Map", "func mapped", 1, 0},
		{"a constant", "Most = 3", "Most = 4", 1, 1},
	} {
		after := strings.Replace(shop, c.old, c.new, 1)
		if c.name == "a field that makes a type incomparable" { // a map needs its keys
			after = strings.Replace(after, "map[ID]Order", "map[string]Order", 1)
			c.gone, c.growth = c.gone+1, c.growth+1
		}
		d := Compare(record(t, shop), record(t, after))
		if len(d.Gone) != c.gone || len(d.Growth) != c.growth {
			t.Errorf("%s: got %s\nwant %d that may break users and %d new", c.name, d, c.gone, c.growth)
		}
	}
}

// What is experimental is let go, and nothing becomes experimental unsaid.
func TestExperimental(t *testing.T) {
	settled := Parse("# m\na: func F()\na: func G()\n")
	young := Parse("# m\na: experimental\na: func F()\na: func G()\n")
	less := Parse("# m\na: experimental\na: func F()\n")
	if d := Compare(young, less); len(d.Gone) != 0 || len(d.Young) != 1 {
		t.Errorf("got %s", d)
	}
	if d := Compare(settled, less); len(d.Gone) != 2 {
		t.Errorf("got %s, want what is gone and that the package is experimental now", d)
	}
	if d := Compare(young, settled); len(d.Gone) != 0 || len(d.Settled) != 1 {
		t.Errorf("got %s", d)
	}
	if got := Parse(young.Text()); !Compare(young, got).None() || got.Module != "m" {
		t.Errorf("a record does not read what it writes: %+v", got)
	}
}
