package dataflow

import (
	"slices"
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// TestOrigins: the failure that a test looks at is followed back to the calls
// of the loop that may have failed.
func TestOrigins(t *testing.T) {
	tests := []struct {
		name, body string
		want       []string
	}{
		{"result", `err := one(); if err != nil { return }`, []string{"one"}},
		{"one of two results", `_, err := two(); if err != nil { return }`, []string{"two"}},
		{"either of two calls", `err := one(); if n > 1 { _, err = two() }; if err != nil { return }`, []string{"one", "two"}},
		{"wrapped by fmt", `err := fmt.Errorf("one: %w", one()); if err != nil { return }`, []string{"one"}},
		{"joined", `err := errors.Join(one()); if err != nil { return }`, []string{"one"}},
		{"converted", `err := typed(one()); if err != nil { return }`, []string{"one"}},
		{"field of a result", `r := three(); if r.Err != nil { return }`, []string{"three"}},
		{"variable outside", `last = one(); if last != nil { return }`, []string{"one"}},
		{"captured variable", `var err error; func() { err = one() }(); if err != nil { return }`, []string{"f$1"}},
		{"field of a receiver", `s.err = one(); if s.err != nil { return }`, []string{"one"}},
		{"made before the loop", `if first != nil { return }`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, `package p
import ("errors"; "fmt")
func one() error
func two() (int, error)
type result struct { Err error }
func three() *result
func typed(error) error
type state struct { err error }
func f(s *state) (last error) {
	first := one()
	for n := range 9 {
		_, _ = first, n
		`+tt.body+`
	}
	return last
}`)
			v, _, _ := tested(t, f)
			got := names(f.Origins(v, f.Loops[0]))
			if tt.name == "captured variable" {
				if len(got) != 1 {
					t.Errorf("got %v, want the call of the closure", got)
				}
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestStoresTo: a variable is the same one through any address of it.
func TestStoresTo(t *testing.T) {
	f := load(t, `package p
type inner struct { n int }
type state struct { a, b inner }
func f(s *state) int {
	s.a.n = 1
	s.b.n = 2
	return s.a.n
}`)
	for ret := range Instrs[*ssa.Return](f.Fn) {
		stores := f.StoresTo(ret.Results[0].(*ssa.UnOp).X)
		if len(stores) != 1 || stores[0].Val.String() != "1:int" {
			t.Errorf("got %v, want the one store to s.a.n", stores)
		}
	}
}

// TestSameOperation: a call is attempted again only when the next turn makes
// the same call.
func TestSameOperation(t *testing.T) {
	tests := []struct {
		name, loop string
		want       bool
	}{
		{"same argument", `for range 3 { if err := send(id); err != nil { continue }; return }`, true},
		{"item of a range", `for _, s := range list { if err := send(s); err != nil { continue }; return }`, false},
		{"item by its index", `for i := 0; i < len(list); i++ { if err := send(list[i]); err != nil { continue }; return }`, false},
		{"rotation", `for i := range 9 { if err := send(list[i%len(list)]); err != nil { continue }; return }`, true},
		{"item of a channel", `for { s := <-ch; if err := send(s); err != nil { continue }; return }`, false},
		{"item in a struct", `for _, s := range list { c.name = s; if err := c.send(); err != nil { continue }; return }`, false},
		{"number of the attempt", `for i := range 3 { if err := sendTry(id, i); err != nil { continue }; return }`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, `package p
type node struct { name string; next *node }
type conn struct { name string }
func (c *conn) send() error
func send(string) error
func sendTry(string, int) error
func f(id string, list []string, ch chan string, head *node, c *conn) {
	`+tt.loop+`
}`)
			_, ok, _ := tested(t, f)
			ops := append(ssatest.Calls(f.Fn, "send"), ssatest.Calls(f.Fn, "sendTry")...)
			if got := SameOperation(f, ops, ok, f.Loops[0]); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestItemLoop(t *testing.T) {
	tests := []struct {
		name, loop string
		want       bool
	}{
		{"range over a map", `for range m { println() }`, true},
		{"range over a slice", `for range list { println() }`, true},
		{"range over a channel", `for range ch { println() }`, true},
		{"attempts", `for range 3 { println() }`, false},
		{"for ever", `for { println() }`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, "package p\nfunc f(m map[int]int, list []int, ch chan int) { "+tt.loop+" }")
			if got := ItemLoop(f, f.Loops[0]); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
