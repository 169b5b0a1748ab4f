package dataflow

import (
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

func TestLoopsNest(t *testing.T) {
	f := load(t, `package p
func f(n int) (sum int) {
	for i := range n {
		for j := range i {
			sum += j
		}
	}
again:
	if sum > 100 {
		sum /= 2
		goto again
	}
	return sum
}`)
	if len(f.Loops) != 3 {
		t.Fatalf("got %d loops, want 3: two for and a goto", len(f.Loops))
	}
	inner := 0
	for _, l := range f.Loops {
		if f.Innermost[l.Header] != l {
			t.Errorf("the innermost loop of a header is another one than its own")
		}
		if l.Parent != nil {
			inner++
			if !l.Parent.Blocks[l.Header] || len(l.Parent.Blocks) <= len(l.Blocks) {
				t.Errorf("got a parent of %d blocks for a loop of %d, want one around it", len(l.Parent.Blocks), len(l.Blocks))
			}
		}
	}
	if inner != 1 {
		t.Errorf("got %d loops inside others, want 1", inner)
	}
}

// TestWalk: a walk ends where the program ends, and at an edge that is refused.
func TestWalk(t *testing.T) {
	tests := []struct {
		name, onFailure string
		again           bool
	}{
		{"goes on", `println(err)`, true},
		{"returns", `return`, false},
		{"leaves", `break`, false},
		{"ends the program", `log.Fatal(err)`, false},
		{"exits", `os.Exit(1)`, false},
		{"leaves by a label", `break outer`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, `package p
import ("log"; "os")
func op() error
func f() {
outer:
	for {
		if err := op(); err != nil {
			`+tt.onFailure+`
		}
		if false { break outer }
	}
}`)
			_, ok, fail := tested(t, f)
			l := f.Loops[0]
			if _, again := l.Walk(fail.To(), nil); again != tt.again {
				t.Errorf("after the failure: got another turn %v, want %v", again, tt.again)
			}
			if _, again := l.Walk(ok.To(), nil); !again {
				t.Error("after the success: got no other turn, want one")
			}
			turn, _ := l.WalkTurn(func(e Edge) bool { return e == fail })
			if turn[fail.To()] && fail.To() != ok.To() && len(fail.To().Preds) == 1 {
				t.Error("a turn that takes no failing edge comes to what only a failure leads to")
			}
		})
	}
}

// TestCaseStays: a receive in a select is a pause when its case goes on with
// the loop, and a limit when it leaves.
func TestCaseStays(t *testing.T) {
	f := load(t, `package p
import "time"
func f(stop <-chan struct{}, tick, end <-chan time.Time) {
	for {
		select {
		case <-tick:
		case <-end:
			return
		case <-stop:
			return
		}
	}
}`)
	for s := range Instrs[*ssa.Select](f.Fn) {
		for n, want := range []bool{true, false} {
			if got := CaseStays(s, n, f.Loops[0]); got != want {
				t.Errorf("case %d stays: got %v, want %v", n, got, want)
			}
		}
		return
	}
	t.Fatal("no select was found")
}

func TestBefore(t *testing.T) {
	fn := ssatest.Load(t, "package p\nfunc one()\nfunc two()\nfunc f() { one(); two() }").Fn(t, "f")
	one, two := ssatest.Call(t, fn, "one"), ssatest.Call(t, fn, "two")
	if !Before(one, two) || Before(two, one) {
		t.Errorf("got %v and %v, want true and false", Before(one, two), Before(two, one))
	}
}

// TestEndsByFlag: a loop that a variable ends makes no other attempt after a
// success, although its body runs to the end.
func TestEndsByFlag(t *testing.T) {
	tests := []struct {
		name, cond, onSuccess string
		want                  bool
	}{
		{"flag in the condition", "i < 3 && !done", "done = true", true},
		{"flag that is not set", "i < 3 && !done", "done = false", false},
		{"no flag", "i < 3", "done = true", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, `package p
func op() error
func f() (done bool) {
	for i := 0; `+tt.cond+`; i++ {
		if err := op(); err == nil {
			`+tt.onSuccess+`
		}
	}
	return done
}`)
			_, ok, fail := tested(t, f)
			got := f.Loops[0].EndsByFlag(ok, func(e Edge) bool { return e == fail }, ssatest.Calls(f.Fn, "op"))
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
