package delay

import (
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// TestWaitOf: what lets time pass before another attempt, and what only looks
// like it.
func TestWaitOf(t *testing.T) {
	tests := []struct {
		name, body       string
		wait, long, tick bool // is one, says how long, is a ticker's
	}{
		{"sleep", `time.Sleep(d)`, true, true, false},
		{"receive from After", `<-time.After(d)`, true, true, false},
		{"select on After", `select { case <-time.After(d): case <-ctx.Done(): return }`, true, true, false},
		{"new timer", `t := time.NewTimer(d); <-t.C`, true, true, false},
		{"timer that is reset", `timer.Reset(d); <-timer.C`, true, true, false},
		{"ticker", `<-ticker.C`, true, true, true},
		{"helper that sleeps for its parameter", `rest(d)`, true, true, false},
		{"helper that sleeps for a time of its own", `pauseABit()`, true, false, false},
		{"function value named for it", `cfg.sleep(d)`, true, true, false},
		{"helper that scales by the attempt", `cfg.backoff(n, d)`, true, false, false},
		{"select on a limit that leaves", `select { case <-limit: return; default: }`, false, false, false},
		{"wait group", `wg.Wait()`, false, false, false},
		{"limiter", `limit2.Wait(ctx)`, false, false, false},
		{"computes a wait", `_ = nextDelay(d)`, false, false, false},
		{"another call", `work(d)`, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scopeWith(t, map[string]string{"golang.org/x/time/rate": "package rate\nimport \"context\"\ntype Limiter struct{}\nfunc (*Limiter) Wait(context.Context) error"}, `package p
import ("context"; "sync"; "time"; "golang.org/x/time/rate")
type settings struct { sleep func(time.Duration); backoff func(int, time.Duration) }
func rest(d time.Duration) { if d > 0 { time.Sleep(d) } }
func pauseABit() { time.Sleep(3) }
func nextDelay(d time.Duration) time.Duration
func work(time.Duration)
func f(ctx context.Context, d time.Duration, cfg settings, wg *sync.WaitGroup, limit2 *rate.Limiter) {
	timer, ticker, limit := time.NewTimer(d), time.NewTicker(d), time.After(d)
	for n := 0; n < 9; n++ {
		_, _, _ = timer, ticker, limit
		`+tt.body+`
	}
}`)
			got := waits(s)
			if len(got) == 0 {
				if tt.wait {
					t.Error("got none, want a wait")
				}
				return
			}
			if w := got[0]; !tt.wait || w.Ticker != tt.tick || (w.D != nil) != tt.long {
				t.Errorf("got %+v; want a wait %v, with a duration %v, of a ticker %v", w, tt.wait, tt.long, tt.tick)
			}
		})
	}
}

// TestFirst: a loop that waits before its first attempt polls more often than
// it retries.
func TestFirst(t *testing.T) {
	tests := []struct {
		name, before, body string
		want               bool
	}{
		{"waits first", ``, `time.Sleep(1); err = op()`, true},
		{"attempts first", ``, `err = op(); time.Sleep(1)`, false},
		{"attempts before the loop", `err = op()`, `time.Sleep(1); err = op()`, false},
		{"waits on some turns", ``, `if n > 0 { time.Sleep(1) }; err = op()`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, "package p\nimport \"time\"\nfunc op() error\nfunc f() (err error) {\n"+tt.before+"\nfor n := 0; n < 3; n++ {\n"+tt.body+"\n}\nreturn err }")
			var ops []*ssa.Call
			for _, c := range ssatest.Calls(s.Fn, "op") {
				if s.Loops[0].Contains(c) {
					ops = append(ops, c)
				}
			}
			if got := First(s, s.Loops[0], waits(s), ops); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestOfFunc: the fact about a helper says which parameter it waits for, or how
// its own wait develops.
func TestOfFunc(t *testing.T) {
	tests := []struct {
		name, body string
		want       fact.Wait
	}{
		{"its parameter", `time.Sleep(d)`, fact.Wait{Param: 1}},
		{"its parameter, to a ceiling", `time.Sleep(min(d, time.Minute))`, fact.Wait{Param: 1}},
		{"its parameter, cut off by hand", `if d > time.Minute { d = time.Minute }; time.Sleep(d)`, fact.Wait{Param: 1}},
		{"its own", `time.Sleep(time.Second)`, fact.Wait{Param: -1, Class: fact.Fixed}},
		{"computed from its parameter", `time.Sleep(d * 3)`, fact.Wait{Param: -1, Class: fact.Pluggable}},
		{"random", `time.Sleep(time.Duration(rand.Int()))`, fact.Wait{Param: -1, Class: fact.Jittered}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scope(t, "package p\nimport (\"math/rand\"; \"time\")\nfunc f(n int, d time.Duration) { "+tt.body+" }")
			w := WaitOf(s, ssatest.Call(t, s.Fn, "Sleep"), nil)
			if got := OfFunc(s, w); *got != tt.want {
				t.Errorf("got %+v, want %+v", *got, tt.want)
			}
		})
	}
}
