package delay

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/lint/internal/dataflow"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// scope returns the scope of the function f of a source. Of the others of its
// package it is known how they wait, and nothing else.
func scope(t *testing.T, src string) *fact.Scope { t.Helper(); return scopeWith(t, nil, src) }

// scopeWith is scope with other packages beside the source.
func scopeWith(t *testing.T, libraries map[string]string, src string) *fact.Scope {
	t.Helper()
	p := ssatest.LoadWith(t, libraries, src)
	known := fact.NewTable(p.Pass, p.Package, func(s *fact.Scope, sum *fact.Summary) {
		for in := range dataflow.Instrs[ssa.Instruction](s.Fn) {
			if w := WaitOf(s, in, nil); w != nil && (w.D != nil || w.Fact != nil) {
				sum.Wait = OfFunc(s, w)
			}
		}
		if len(s.Fn.Blocks) > 0 {
			sum.Delay = Result(s)
		}
	})
	return known.Scope(p.Fn(t, "f"))
}

const around = `package p
import ("context"; "math"; "math/rand"; "net/http"; "os"; "time")
type config struct { Interval time.Duration; RetryAfter time.Duration }
var table = []time.Duration{1, 2, 3}
var every = time.Second
func op() (*http.Response, error)
func half(d time.Duration) time.Duration { return d / 2 }
func nth(n int) time.Duration { return time.Second << n }
func step(n int) time.Duration { if n > 2 { return 9 }; return 3 }
func full(d time.Duration) time.Duration { return time.Duration(rand.Int63n(int64(d))) }
func randomized(d time.Duration) time.Duration { return d }
func backoff(n int, wait time.Duration) { time.Sleep(wait << n) }
func pause() { time.Sleep(every) }
type policy interface { Next(n int) time.Duration }
func f(ctx context.Context, cfg *config, p policy, given time.Duration, resp *http.Response, busy bool) {
	d := time.Second
	for n := 0; n < 9; n++ {
		`

// TestClassify holds the verdicts on a wait: what develops how from one attempt
// to the next.
func TestClassify(t *testing.T) {
	tests := []struct {
		name, body string
		want       fact.Class
		known      time.Duration
	}{
		{"constant", `time.Sleep(2 * time.Second)`, fact.Fixed, 2 * time.Second},
		{"variable of the package", `time.Sleep(every)`, fact.Fixed, 0},
		{"setting", `time.Sleep(cfg.Interval)`, fact.Fixed, 0},
		{"parameter", `time.Sleep(given)`, fact.Fixed, 0},
		{"arithmetic on a setting", `time.Sleep(cfg.Interval / 2)`, fact.Fixed, 0},
		{"helper with a constant", `time.Sleep(half(time.Second))`, fact.Fixed, 0},
		{"one entry of a table", `time.Sleep(table[1])`, fact.Fixed, 0},
		{"doubled", `time.Sleep(d); d *= 2`, fact.Growing, 0},
		{"doubled to a ceiling", `time.Sleep(d); d = min(2*d, time.Minute)`, fact.Growing, 0},
		{"shifted by the attempt", `time.Sleep(time.Second << n)`, fact.Growing, 0},
		{"a power of the attempt", `time.Sleep(time.Duration(math.Pow(2, float64(n))))`, fact.Growing, 0},
		{"an entry for each attempt", `time.Sleep(table[n])`, fact.Growing, 0},
		{"helper with the attempt", `time.Sleep(nth(n))`, fact.Growing, 0},
		{"one helper twice, the second time with what grows", `time.Sleep(half(every) + half(d)); d *= 2`, fact.Growing, 0},
		{"one helper twice, the second time at random", `time.Sleep(half(every) + half(time.Duration(rand.Int63())))`, fact.Jittered, 0},
		{"one helper twice, with settings", `time.Sleep(half(every) + half(cfg.Interval))`, fact.Fixed, 0},
		{"helper that steps", `time.Sleep(step(n))`, fact.Growing, 0},
		{"raised by some turns", `if busy { d = time.Minute }; time.Sleep(d)`, fact.Growing, 0},
		{"equal jitter", `time.Sleep(d/2 + time.Duration(rand.Int63n(int64(d/2)))); d *= 2`, fact.EqualJitter, 0},
		{"full jitter", `time.Sleep(time.Duration(rand.Int63n(int64(d)))); d *= 2`, fact.Jittered, 0},
		{"full jitter in a helper", `time.Sleep(full(d)); d *= 2`, fact.Jittered, 0},
		{"a helper's name says jitter", `time.Sleep(randomized(d)); d *= 2`, fact.Jittered, 0},
		{"another policy's", `time.Sleep(p.Next(n))`, fact.Pluggable, 0},
		{"the server's header", `t, _ := time.ParseDuration(resp.Header.Get("Retry-After")); time.Sleep(t)`, fact.Server, 0},
		{"a field named for the header", `time.Sleep(cfg.RetryAfter)`, fact.Server, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, around+tt.body+"\n\t}\n}")
			w := WaitOf(s, ssatest.Call(t, s.Fn, "Sleep"), s.Loops[0])
			got := Classify(s, w.D, s.Loops[0], nil)
			if got.Class != tt.want {
				t.Errorf("got class %d, want %d", got.Class, tt.want)
			}
			if got.Known != (tt.known != 0) || got.Value != tt.known {
				t.Errorf("got %v (known %v), want %v", got.Value, got.Known, tt.known)
			}
		})
	}
}

// TestName: a finding names the setting that a fixed wait comes from.
func TestName(t *testing.T) {
	for body, want := range map[string]string{"time.Sleep(cfg.Interval)": "Interval", "time.Sleep(every)": "every", "time.Sleep(given)": "given"} {
		s := scope(t, around+body+"\n\t}\n}")
		w := WaitOf(s, ssatest.Call(t, s.Fn, "Sleep"), s.Loops[0])
		if got := Classify(s, w.D, s.Loops[0], nil); got.Name != want {
			t.Errorf("%s: got %q, want %q", body, got.Name, want)
		}
	}
}

// TestMerge: the most careful of several waits counts, and one that is not
// known silences the rest.
func TestMerge(t *testing.T) {
	tests := []struct {
		name, body string
		want       fact.Class
	}{
		{"none", ``, fact.Immediate},
		{"fixed and random", `if busy { time.Sleep(d) } else { time.Sleep(full(d)) }`, fact.Jittered},
		{"fixed and another policy's", `if busy { time.Sleep(d) } else { time.Sleep(p.Next(n)) }`, fact.Pluggable},
		{"in a helper", `pause()`, fact.Fixed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, around+tt.body+"\n\t}\n}")
			if got := Merge(s, waits(s), s.Loops[0], nil); got.Class != tt.want {
				t.Errorf("got class %d, want %d", got.Class, tt.want)
			}
		})
	}
}

// waits returns the waits of the only loop of a scope.
func waits(s *fact.Scope) (found []*Wait) {
	for in := range dataflow.Instrs[ssa.Instruction](s.Fn) {
		if w := WaitOf(s, in, s.Loops[0]); w != nil && s.Loops[0].Contains(in) {
			found = append(found, w)
		}
	}
	return found
}

// TestResult: what a function returns as a duration is judged for its callers.
func TestResult(t *testing.T) {
	tests := []struct {
		name, source string
		want         fact.Class
	}{
		{"constant", `func f() time.Duration { return time.Second }`, fact.Fixed},
		{"grows with its argument", `func f(n int) time.Duration { return time.Duration(n) * time.Second }`, fact.Growing},
		{"computed from a duration that it is given", `func f(d time.Duration) time.Duration { return 2 * d }`, fact.Pluggable},
		{"a setting in what it is given", `type c struct{ every time.Duration }; func f(v c) time.Duration { return v.every }`, fact.Pluggable},
		{"grows to a ceiling that it is given", `func f(n int, top time.Duration) time.Duration { return min(top, time.Duration(n)*time.Second) }`, fact.Growing},
		{"random", `func f(d time.Duration) time.Duration { return time.Duration(rand.Int63n(int64(d))) }`, fact.Jittered},
		{"equal jitter", `func f(d time.Duration) time.Duration { return d/2 + time.Duration(rand.Int63n(int64(d/2))) }`, fact.EqualJitter},
		{"no duration", `func f() int { return 1 }`, fact.Pluggable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, "package p\nimport (\"math/rand\"; \"time\")\n"+tt.source)
			if got := Result(s); got != tt.want {
				t.Errorf("got class %d, want %d", got, tt.want)
			}
		})
	}
}

// TestEqualJitter: half of a wait is fixed and the other half is random, in
// the ways in which that is written.
func TestEqualJitter(t *testing.T) {
	tests := []struct {
		wait string
		want bool
	}{
		{`d/2 + rand.N(d/2)`, true},
		{`rand.N(d/2) + d/2`, true},
		{`d/2 + rand.N(d/2 + 1)`, true},
		{`d>>1 + time.Duration(rand.Int64N(int64(d/2)))`, true},
		{`h + rand.N(h)`, true},
		{`h + time.Duration(rand.Float64()*float64(h))`, true},
		{`d/2 + time.Duration(rand.Float64()*float64(d/2))`, true},
		{`time.Duration(float64(d)*0.5 + rand.Float64()*(float64(d)*0.5))`, true},
		{`rand.N(d)`, false},
		{`rand.N(d/2)`, false},
		{`d + rand.N(d/10)`, false},
		{`d/2 + rand.N(d)`, false}, // around d, as pollers do
		{`d/2 + h`, false},
		{`d/2 - rand.N(d/2)`, false},
	}
	for _, tt := range tests {
		t.Run(tt.wait, func(t *testing.T) {
			s := scope(t, "package p\nimport (\"math/rand/v2\"; \"time\")\nfunc f(d time.Duration) time.Duration { h := d / 2; _ = h; return "+tt.wait+" }")
			got := false
			for op := range dataflow.Instrs[*ssa.BinOp](s.Fn) {
				if equalJitter(op) {
					got = true
				}
			}
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
