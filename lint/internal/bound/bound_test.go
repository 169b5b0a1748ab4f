//forbear:plain rules have no goroutines; package lint runs them at once
package bound

import (
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// TestOf: what ends a loop whose operation keeps failing, and after how many
// attempts.
func TestOf(t *testing.T) {
	tests := []struct {
		name, loop string
		want       Bound
	}{
		{"nothing", `for op() != nil { }`, Bound{}},
		{"counter in the head", `for i := 0; i < 5; i++ { if op() == nil { return } }`, Bound{Counter: true, Limit: 5, Known: true}},
		{"counter to and with its limit", `for i := 1; i <= 5; i++ { if op() == nil { return } }`, Bound{Counter: true, Limit: 5, Known: true}},
		{"counter to and with, from zero", `for i := 0; i <= 5; i++ { if op() == nil { return } }`, Bound{Counter: true, Limit: 6, Known: true}},
		{"range over an integer", `for range 4 { if op() == nil { return } }`, Bound{Counter: true, Limit: 4, Known: true}},
		{"counts down", `for i := 3; i > 0; i-- { if op() == nil { return } }`, Bound{Counter: true, Limit: 3, Known: true}},
		{"limit behind the operation", `for i := 0; ; i++ { if op() == nil || i >= 3 { return } }`, Bound{Counter: true, Limit: 4, Known: true}},
		{"counted before the limit", `for i := 0; ; { err := op(); i++; if err == nil || i > 3 { return } }`, Bound{Counter: true, Limit: 4, Known: true}},
		{"the smaller of two limits", `for i := 0; i < 9; i++ { if i == 2 { return }; if op() == nil { return } }`, Bound{Counter: true, Limit: 2, Known: true}},
		{"limit that is a setting", `for i := 0; i < limit; i++ { if op() == nil { return } }`, Bound{Counter: true}},
		{"counter in a field", `for { if op() == nil || s.tries > 3 { return }; s.tries++ }`, Bound{Counter: true, Limit: 5, Known: true}},
		{"size of something else", `for len(list) < 5 { if op() == nil { return } }`, Bound{}},
		{"deadline", `for time.Now().Before(end) { if op() == nil { return } }`, Bound{Deadline: true}},
		{"elapsed time", `for op() != nil { if time.Since(end) > time.Minute { return } }`, Bound{Deadline: true}},
		{"timer that leaves", `for op() != nil { select { case <-timeout: return; default: } }`, Bound{Deadline: true}},
		{"context of the caller", `for op() != nil { if ctx.Err() != nil { return } }`, Bound{Context: true}},
		{"context handed to the operation", `for with(ctx) != nil { }`, Bound{Context: true}},
		{"end of a context", `for op() != nil { select { case <-ctx.Done(): return; default: } }`, Bound{Context: true}},
		{"timeout around the loop", `short, _ := context.WithTimeout(ctx, 1); for with(short) != nil { }`, Bound{Context: true, Deadline: true}},
		{"timeout behind a cancel", `a, _ := context.WithTimeout(ctx, 1); b, _ := context.WithCancel(a); for with(b) != nil { }`, Bound{Context: true, Deadline: true}},
		{"timeout that all callers set", `for with(given) != nil { }`, Bound{Context: true, Deadline: true}},
		{"context that never ends", `for with(context.Background()) != nil { }`, Bound{}},
		{"counter in a helper", `for s.more() { if op() == nil { return } }`, Bound{Counter: true}},
		{"helper that only looks", `for s.any() { if op() == nil { return } }`, Bound{}},
		{"channel that others close", `for op() != nil { select { case <-stop: return; default: } }`, Bound{Stop: true}},
		{"channel that goes on", `for op() != nil { select { case <-stop: default: } }`, Bound{}},
		{"flag that others set", `for !s.done { if op() == nil { return } }`, Bound{Stop: true}},
		{"timeout of one attempt", `for { short, _ := context.WithTimeout(ctx, 1); if with(short) == nil { return } }`, Bound{Context: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := ssatest.Load(t, `package p
import ("context"; "time")
type state struct { tries int; done bool }
func (s *state) more() bool { s.tries++; return s.tries < 5 }
func (s *state) any() bool { return s.tries > 0 }
func op() error
func with(context.Context) error
func caller() { short, _ := context.WithTimeout(context.Background(), 1); f(nil, short, 0, nil, nil, time.Time{}, nil, nil) }
func f(ctx, given context.Context, limit int, list []int, s *state, end time.Time, timeout <-chan time.Time, stop chan bool) {
	`+tt.loop+`
}`)
			f := fact.NewTable(p.Pass, p.Package, nil).Scope(p.Fn(t, "f"))
			ops := append(ssatest.Calls(f.Fn, "op"), ssatest.Calls(f.Fn, "with")...)
			if got := Of(f, f.Loops[0], ops); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestConditions: which branches look at a counter, and which at the clock.
func TestConditions(t *testing.T) {
	tests := []struct {
		cond          string
		counts, clock bool
	}{
		{`i > 3`, true, false},
		{`3 < i+1`, true, false},
		{`int64(i) > 3`, true, false},
		{`n > 3`, false, false},
		{`time.Since(at) > d`, false, true},
		{`at.Sub(at) > d`, false, true},
		{`d > 3`, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.cond, func(t *testing.T) {
			f := dataflow.NewFunc(ssatest.Load(t, `package p
import "time"
func f(n int, d time.Duration, at time.Time) {
	for i := 0; ; i++ {
		if `+tt.cond+` { return }
	}
}`).Fn(t, "f"))
			for _, b := range f.Fn.Blocks {
				i := dataflow.IfOf(b)
				if i == nil {
					continue
				}
				cmp := i.Cond.(*ssa.BinOp)
				if got := CountsIn(f, cmp, f.Loops[0]); got != tt.counts {
					t.Errorf("looks at a counter: got %v, want %v", got, tt.counts)
				}
				if got := dataflow.Timely(cmp.X, 0) || dataflow.Timely(cmp.Y, 0); got != tt.clock {
					t.Errorf("looks at the clock: got %v, want %v", got, tt.clock)
				}
			}
		})
	}
}
