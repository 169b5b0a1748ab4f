package dataflow

import (
	"go/types"
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// TestDescribe: a call has the name that a reader of the source would give it.
func TestDescribe(t *testing.T) {
	tests := []struct{ call, describe, name, pkg string }{
		{`http.Get("")`, "http.Get", "Get", "net/http"},
		{`c.Do(nil)`, "http.Client.Do", "Do", "net/http"},
		{`own()`, "p.own", "own", "example.com/p"},
		{`err.Error()`, "error.Error", "Error", ""},
		{`fn()`, "fn", "fn", ""},
		{`s.hook()`, "hook", "hook", ""},
		{`generic[int]()`, "p.generic", "generic", "example.com/p"},
	}
	for _, tt := range tests {
		t.Run(tt.call, func(t *testing.T) {
			f := load(t, `package p
import "net/http"
func own()
func generic[T any]() { own() }
type state struct { hook func() }
func f(c *http.Client, err error, fn func(), s *state) { `+tt.call+` }`)
			for _, in := range f.Fn.Blocks[0].Instrs {
				c, ok := in.(*ssa.Call)
				if !ok {
					continue
				}
				if got := Describe(c.Common()); got != tt.describe {
					t.Errorf("Describe: got %q, want %q", got, tt.describe)
				}
				if n, p := CalleeName(c.Common()), CalleePkg(c.Common()); n != tt.name || p != tt.pkg {
					t.Errorf("got %q of %q, want %q of %q", n, p, tt.name, tt.pkg)
				}
				return
			}
			t.Fatal("no call was found")
		})
	}
}

// TestStatic: the body behind a call is found through method values and
// instances.
func TestStatic(t *testing.T) {
	f := load(t, `package p
func plain() {}
func generic[T any]() {}
type s struct{}
func (s) method() {}
func f(v s, fn func()) {
	plain()
	generic[int]()
	bound := v.method
	bound()
	fn()
}`)
	var got []string
	for _, in := range f.Fn.Blocks[0].Instrs {
		if c, ok := in.(*ssa.Call); ok {
			fn := Static(c.Common())
			if fn == nil {
				got = append(got, "none")
				continue
			}
			if len(fn.Blocks) == 0 {
				t.Errorf("%s has no body", fn)
			}
			got = append(got, fn.Name())
		}
	}
	if want := []string{"plain", "generic", "method", "none"}; len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTypes(t *testing.T) {
	p := ssatest.Load(t, `package p
import ("context"; "time")
type MyError interface { error; Code() int }
type pathErr struct{}
func (*pathErr) Error() string
type plain struct{}
func (*plain) Error() string
var (
	err error; mine MyError; pathError *pathErr; other *plain
	ctx context.Context; d time.Duration; n int; ticks <-chan time.Time; texts chan string
)
func silent() (bool, error)
func talks() (int, error)`)
	typ := func(name string) types.Type { return p.Pkg.Scope().Lookup(name).Type() }
	tests := []struct {
		question string
		holds    func(types.Type) bool
		yes, no  []string
	}{
		{"IsError", IsError, []string{"err", "mine", "pathError"}, []string{"other", "ctx", "n"}},
		{"IsContext", IsContext, []string{"ctx"}, []string{"err", "d"}},
		{"IsDuration", IsDuration, []string{"d"}, []string{"n", "ticks"}},
		{"IsInteger", IsInteger, []string{"n", "d"}, []string{"err", "texts"}},
		{"IsTimeChan", IsTimeChan, []string{"ticks"}, []string{"texts", "d"}},
		{"TellsNothing", func(t types.Type) bool { return TellsNothing(t.(*types.Signature)) }, []string{"silent"}, []string{"talks"}},
	}
	for _, tt := range tests {
		for _, name := range tt.yes {
			if !tt.holds(typ(name)) {
				t.Errorf("%s(%s): got false, want true", tt.question, name)
			}
		}
		for _, name := range tt.no {
			if tt.holds(typ(name)) {
				t.Errorf("%s(%s): got true, want false", tt.question, name)
			}
		}
	}
}
