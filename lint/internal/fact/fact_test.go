//forbear:plain rules have no goroutines; package lint runs them at once
package fact

import (
	"go/types"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// TestOf: a function of the package is summarized once, one of another package
// is known by its fact, and of the rest nothing is known.
func TestOf(t *testing.T) {
	p := ssatest.LoadWith(t, map[string]string{"example.com/q": "package q\nfunc Known()\nfunc Unknown()"}, `package p
import "example.com/q"
func own() {}
func bodyless()
type s struct{}
func (s) method(d int) {}
func f(v s, fn func()) {
	own()
	own()
	v.method(1)
	q.Known()
	q.Unknown()
	fn()
	bodyless()
}`)
	p.Pass.ImportObjectFact = func(o types.Object, f analysis.Fact) bool {
		*f.(*Summary) = Summary{Remote: true}
		return o.Name() == "Known"
	}
	var summarized []string
	known := NewTable(p.Pass, p.Package, func(s *Scope, sum *Summary) {
		summarized = append(summarized, s.Fn.Name())
		sum.Local = true
	})
	var got []string
	for _, in := range p.Fn(t, "f").Blocks[0].Instrs {
		c, ok := in.(*ssa.Call)
		if !ok {
			continue
		}
		switch sum := known.Of(c.Common()); {
		case sum == nil:
			got = append(got, "nothing")
		case sum.Remote:
			got = append(got, "fact")
		case sum.Local:
			got = append(got, "summary")
		}
	}
	if want := []string{"summary", "summary", "summary", "fact", "nothing", "nothing", "nothing"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"own", "method"}; !slices.Equal(summarized, want) {
		t.Errorf("summarized %v, want %v", summarized, want)
	}
}

// TestImplementers: a call through an interface may reach the kinds of that
// interface, and no others of one that it embeds.
func TestImplementers(t *testing.T) {
	p := ssatest.LoadWith(t, map[string]string{"example.com/q": `package q
type A struct{}
func (A) Do()
func (A) Close()
type B struct{}
func (B) Do()`}, `package p
import _ "example.com/q"
type doer interface { Do() }
type client interface { doer; Close() }
func f(d doer, c client) { d.Do(); c.Do() }`)
	p.Pass.Module = &analysis.Module{Path: "example.com"}
	p.Pass.ImportObjectFact = func(types.Object, analysis.Fact) bool { return true }
	known := NewTable(p.Pass, p.Package, nil)
	var got []int
	for _, c := range ssatest.Calls(p.Fn(t, "f"), "Do") {
		got = append(got, len(known.Implementers(c.Common())))
	}
	if want := []int{2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRecursion: a function that is asked for while it is summarized is known
// to do nothing, and the question ends.
func TestRecursion(t *testing.T) {
	p := ssatest.Load(t, "package p\nfunc f() { f() }")
	var known *Table
	known = NewTable(p.Pass, p.Package, func(s *Scope, sum *Summary) {
		if inner := known.Local(s.Fn); !inner.Empty() {
			t.Errorf("got %v, want the empty summary", inner)
		}
		sum.Retries = true
	})
	if !known.Local(p.Fn(t, "f")).Retries {
		t.Error("the summary is not kept")
	}
}

// TestMethodValue: a call of a method value leaves the receiver out, so that
// parameters have other numbers.
func TestMethodValue(t *testing.T) {
	p := ssatest.Load(t, `package p
type s struct{}
func (s) send(method string) {}
func f(v s) { bound := v.send; bound("POST") }`)
	known := NewTable(p.Pass, p.Package, func(_ *Scope, sum *Summary) {
		sum.Wait = &Wait{Param: 1}
		sum.AddSend(Send{Param: 1})
		sum.Retried = []Send{{Param: 1}, {Method: "GET", Param: -1}}
	})
	for _, in := range p.Fn(t, "f").Blocks[0].Instrs {
		c, ok := in.(*ssa.Call)
		if !ok {
			continue
		}
		sum := known.Of(c.Common())
		if sum.Wait.Param != 0 || sum.Sends[0].Param != 0 || sum.Retried[0].Param != 0 || sum.Retried[1].Param != -1 {
			t.Errorf("got %v of %+v, want every parameter one to the left", sum, sum.Wait)
		}
		if direct := known.Local(p.Fn(t, "s.send")); direct.Wait.Param != 1 || direct.Sends[0].Param != 1 {
			t.Errorf("the method's own summary was changed: %v", direct)
		}
	}
}

// TestOwn: literals and instances belong to the package that holds them.
func TestOwn(t *testing.T) {
	p := ssatest.Load(t, `package p
import "strings"
func generic[T any]() {}
func f() { func() { generic[int]() }(); strings.ToUpper("") }`)
	known := NewTable(p.Pass, p.Package, nil)
	f := p.Fn(t, "f")
	instance := ssatest.Calls(f.AnonFuncs[0], "generic[int]")
	if len(instance) != 1 || !known.Own(f) || !known.Own(f.AnonFuncs[0]) || !known.Own(instance[0].Common().StaticCallee()) {
		t.Error("a function, its literal and an instance: want all three its own")
	}
	if known.Own(ssatest.Call(t, f, "ToUpper").Common().StaticCallee()) {
		t.Error("strings.ToUpper: got its own, want not")
	}
	if first := known.Scope(f); first != known.Scope(f) {
		t.Error("a function has two scopes, want one")
	}
}

// TestAddSend: each request counts once, and a function with very many is known
// by the first of them.
func TestAddSend(t *testing.T) {
	var sum Summary
	for range 2 {
		for i := range 12 {
			sum.AddSend(Send{Param: i})
		}
	}
	if len(sum.Sends) != 8 || sum.Empty() {
		t.Errorf("got %d requests, empty %v; want 8, false", len(sum.Sends), sum.Empty())
	}
}

// TestAddKind: a list that has no room for a kind says so.
func TestAddKind(t *testing.T) {
	var kinds []string
	for _, k := range []string{"a", "b", "a", "", "c", "d", "e", "f", "g", "h"} {
		kinds = AddKind(kinds, k)
	}
	if len(kinds) != 8 || slices.Contains(kinds, OtherKinds) {
		t.Errorf("got %v, want the eight kinds", kinds)
	}
	kinds = AddKind(AddKind(kinds, "i"), "j")
	if len(kinds) != 9 || kinds[8] != OtherKinds {
		t.Errorf("got %v, want the eight kinds and others", kinds)
	}
}

// TestJoin: what one of several loops tries again is tried again, and what ends
// one of them ends them all.
func TestJoin(t *testing.T) {
	a := &Retrier{Delay: Fixed, Every: -1, Only: []string{"a"}, Ends: []string{"x"}}
	b := &Retrier{Delay: Fixed, Every: -1, Only: []string{"b"}, Default: true}
	got := a.Join(b)
	if !slices.Equal(got.Only, []string{"b", "a"}) || !slices.Equal(got.Ends, []string{"x"}) || !got.Default || got.Delay != Fixed {
		t.Errorf("got %+v, want both of their kinds, by default", got)
	}
	if got := a.Join(&Retrier{Delay: Growing, Every: -1}); got.Only != nil || got.Delay != Pluggable {
		t.Errorf("got %+v, want all failures, after a wait that is not known", got)
	}
	few := &Retrier{Ends: []string{"a", "b", "c", "d", "e"}}
	if got := few.Join(&Retrier{Ends: []string{"f", "g", "h", "i", "j"}}); !got.Picky {
		t.Errorf("got %+v, want one that ends by kinds that found no room", got)
	}
	until := &Retrier{Contract: UntilDone}
	if got := until.Join(a); got != a {
		t.Errorf("got %+v, want the one that retries on a failure", got)
	}
	if got := a.Join(until); got != a {
		t.Errorf("got %+v, want the one that retries on a failure", got)
	}
}

// TestEmpty: no single thing that is known of a function is left out.
func TestEmpty(t *testing.T) {
	if !(&Summary{}).Empty() {
		t.Error("a summary of nothing is not empty")
	}
	for i := range reflect.TypeFor[Summary]().NumField() {
		var sum Summary
		f := reflect.ValueOf(&sum).Elem().Field(i)
		switch f.Kind() {
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(1)
		case reflect.Array:
			f.Index(0).SetUint(1)
		default:
			t.Fatalf("%s is of a kind that the test does not know", reflect.TypeFor[Summary]().Field(i).Name)
		}
		if sum.Empty() {
			t.Errorf("with %s: got an empty summary", reflect.TypeFor[Summary]().Field(i).Name)
		}
	}
}
