package httpretry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/reason"
)

// crowd calls through one transport: so many callers, so many calls a second in all.
type crowd struct {
	callers  int
	rate     float64
	duration time.Duration
	path     func(n int) string
}

// atPhase runs f in a test's own time, from when that is a phase behind a whole second of
// the windows that the rule counts in. They begin with the process: what comes of a crowd
// would depend on when that was.
func atPhase(t *testing.T, phase time.Duration, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep((phase - time.Since(window.Epoch())%time.Second + time.Second) % time.Second)
		f(t)
	})
}

// result is what a crowd saw.
type result struct {
	calls, admitted, sends, good, refused, failed int
	ok                                            map[string]int
}

func (r result) perCall() float64 { return float64(r.sends) / float64(max(r.admitted, 1)) }

// run calls until the time is over, and waits for the last to end.
func (c crowd) run(ctx context.Context, t http.RoundTripper, l *limited) (r result) {
	var mu sync.Mutex
	r.ok = map[string]int{}
	var wg sync.WaitGroup
	var calls atomic.Int64
	every := time.Duration(float64(c.callers) / c.rate * float64(time.Second))
	start := time.Now()
	l.mu.Lock()
	if l.start.IsZero() {
		l.start = start
	}
	l.mu.Unlock()
	for i := range c.callers {
		wg.Go(func() {
			at := start.Add(every * time.Duration(i) / time.Duration(c.callers))
			for at.Before(start.Add(c.duration)) {
				time.Sleep(time.Until(at))
				path := "/"
				n := int(calls.Add(1))
				if c.path != nil {
					path = c.path(n)
				}
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.test"+path, nil)
				resp, err := t.RoundTrip(req)
				mu.Lock()
				r.calls++
				e, isErr := errors.AsType[*forbear.Error](err)
				switch {
				case err == nil && resp.StatusCode == 200:
					r.good++
					r.admitted++
					r.ok[path]++
				case isErr && e.Attempts == 0 && e.Reason == reason.Paced:
					r.refused++
				case isErr && e.Attempts == 0:
					r.failed++
				default:
					r.failed++
					r.admitted++
				}
				mu.Unlock()
				if resp != nil {
					resp.Body.Close()
				}
				for at = at.Add(every); at.Before(time.Now()); at = at.Add(every) {
				}
			}
		})
	}
	wg.Wait()
	l.mu.Lock() // another crowd may go on
	defer l.mu.Unlock()
	r.sends = l.sends
	return r
}

// opens counts the openings of a breaker.
func opens(n *int) forbear.Option {
	var mu sync.Mutex
	return forbear.WithObserver(&forbear.Observer{KeepsLog: true, BreakerMoved: func(e breaker.Transition) {
		mu.Lock()
		defer mu.Unlock()
		if e.To == breaker.Open {
			*n++
		}
	}})
}

// steady returns the sends for each good one in the seconds [from, to).
func (l *limited) steady(from, to int) float64 {
	n := 0
	for i := from; i < min(to, len(l.sent)); i++ {
		n += l.sent[i]
	}
	return float64(n) / float64(to-from) / l.between(from, to)
}

// worst returns the smallest share of a rate that was good in a second of [from, to).
func (l *limited) worst(from, to int, rate float64) float64 {
	least := math.Inf(1)
	for s := from; s < min(to, len(l.good)); s++ {
		least = min(least, float64(l.good[s])/rate)
	}
	return least
}

// limiters are those of the world, at a rate.
var limiters = []struct {
	name string
	make func(rate float64) *limited
}{
	{"bucket", func(r float64) *limited { return &limited{limit: newBucket(r, max(r/20, 1))} }},
	{"big bucket", func(r float64) *limited { return &limited{limit: newBucket(r, 2*r)} }},
	{"GCRA", func(r float64) *limited { return &limited{limit: newBucket(r, 1)} }},
	{"fixed", func(r float64) *limited { return &limited{limit: &fixed{rate: r, length: time.Second}} }},
	{"fixed, 1", func(r float64) *limited {
		return &limited{limit: &fixed{rate: r, length: time.Second}, headers: retryAfter(1)}
	}},
	{"fixed, quota", func(r float64) *limited {
		return &limited{limit: &fixed{rate: r, length: time.Second}, headers: quotaHeaders(int(r))}
	}},
	{"sliding", func(r float64) *limited { return &limited{limit: &sliding{rate: r}} }},
	{"sliding, counts all", func(r float64) *limited { return &limited{limit: &sliding{rate: r, counted: true}} }},
	{"bucket, 0", func(r float64) *limited {
		return &limited{limit: newBucket(r, max(r/20, 1)), headers: retryAfter(0)}
	}},
	{"bucket, 5", func(r float64) *limited {
		return &limited{limit: newBucket(r, max(r/20, 1)), headers: retryAfter(5)}
	}},
	{"bucket, 30", func(r float64) *limited {
		return &limited{limit: newBucket(r, max(r/20, 1)), headers: retryAfter(30)}
	}},
}

// goal is what a row of the table has to reach: the share of the limit that is good from
// the sixth second on, and sends for each admitted call over all. A limiter that refuses every
// second request which is a little too early, and one that counts what it refuses, leave
// less; five a second are too few to learn from quickly. Their goals hold what is reached.
func goal(limiter string, rate float64, latency time.Duration) (good, perCall float64) {
	slow := latency > 100*time.Millisecond
	switch {
	case rate < 50:
		return 0, 1.3
	case limiter == "sliding, counts all":
		return 0.3, 1.3
	case limiter == "GCRA" && slow:
		return 0.6, 1.15
	case limiter == "GCRA":
		return 0.88, 1.1
	case slow || rate < 100:
		return 0.9, 1.25
	default:
		return 0.95, 1.1
	}
}

// TestPaceTable plays 1,000 calls a second and more against the limiters of the world:
// at night at each rate, and over a longer way. A shorter time would leave more to chance.
func TestPaceTable(t *testing.T) {
	const lasts = 20 // seconds
	for i, tt := range limiters {
		rates := []float64{5, 50, 200, 2000}
		if i > 4 && tt.name != "sliding" || !ringtest.Nightly() {
			rates = rates[2:3] // what these add to the others does not depend on the rate
		}
		for _, rate := range rates {
			for _, latency := range []time.Duration{5 * time.Millisecond, 200 * time.Millisecond} {
				for _, callers := range []int{50, 500} {
					if rate == 2000 && (callers < 500 || latency > 100*time.Millisecond) || rate == 200 && callers < 500 && latency > 100*time.Millisecond {
						continue // too few to use the limit while some of them wait for a retry
					}
					if !ringtest.Nightly() && (callers > 50 || latency > 100*time.Millisecond) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%v/%v/%d", tt.name, rate, latency, callers), func(t *testing.T) {
						atPhase(t, 0, func(t *testing.T) {
							l := tt.make(rate)
							l.latency = latency
							opened := 0
							tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}, opens(&opened)), httpretry.WithPacer(&pace.Pacer{}))
							c := crowd{callers: callers, rate: max(1000, 3*rate), duration: time.Duration(lasts) * time.Second}
							r := c.run(t.Context(), tr, l)
							good, perCall := goal(tt.name, rate, latency)
							t.Logf("%-19s %4v/s %5v %3d callers: good %.2f, steady %.2f; sends a call %.2f, steady %.2f a good one; refused %d, opened %d",
								tt.name, rate, latency, callers, l.between(0, lasts)/rate, l.between(5, lasts)/rate, r.perCall(), l.steady(5, lasts), r.refused, opened)
							if got := l.between(5, lasts) / rate; got < good {
								t.Errorf("%.3f of the limit were good, want %v", got, good)
							}
							if got := r.perCall(); got > perCall {
								t.Errorf("%.3f sends a call, want at most %v", got, perCall)
							}
							if opened > 0 && rate >= 50 && good > 0.5 {
								t.Errorf("the breaker opened %d times", opened)
							}
						})
					})
				}
			}
		}
	}
}

// TestPaceAtAnyPhase: a limit that counts by the second leaves as much to who began at
// another time of its second.
func TestPaceAtAnyPhase(t *testing.T) {
	const rate = 200
	phases := ringtest.Size(4, 20)
	var sum, worst float64 = 0, 1
	for i := range phases {
		atPhase(t, time.Duration(i)*940*time.Millisecond/time.Duration(phases), func(t *testing.T) {
			l := &limited{limit: &fixed{rate: rate, length: time.Second}, headers: quotaHeaders(rate), latency: 5 * time.Millisecond}
			tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}), httpretry.WithPacer(&pace.Pacer{}))
			crowd{callers: 50, rate: 1000, duration: 20 * time.Second}.run(t.Context(), tr, l)
			good := l.between(5, 20) / rate
			sum, worst = sum+good, min(worst, good)
		})
	}
	mean := sum / float64(phases)
	t.Logf("good %.3f of the limit on average, %.3f at worst", mean, worst)
	if mean < 0.95 || worst < 0.9 {
		t.Errorf("good %.3f of the limit on average and %.3f at worst, want 0.95 and 0.9", mean, worst)
	}
}

// TestPaceBesideOthers puts this rule beside none, and beside the published one of the
// AWS SDKs, at a limit of 200 a second: nothing gets more out of it.
func TestPaceBesideOthers(t *testing.T) {
	ringtest.OnlyNightly(t, "a table of others; TestPaceTable holds this rule")
	for _, tt := range limiters[:7] {
		most := 0.0
		for _, how := range []string{"none", "cubic", "pace"} {
			atPhase(t, 0, func(t *testing.T) {
				l := tt.make(200)
				l.latency = 5 * time.Millisecond
				opened := 0
				var next http.RoundTripper = l
				var opts []httpretry.Option
				var policy forbear.Policy
				switch how {
				case "cubic":
					next, policy.Breaker.Disabled = &cubic{next: l}, true
					opts = append(opts, httpretry.WithoutAttemptTimeout()) // it waits below
				case "pace":
					opts = append(opts, httpretry.WithPacer(&pace.Pacer{}))
				}
				tr := httpretry.NewTransport(next, quiet(t, policy, opens(&opened)), opts...)
				r := crowd{callers: 500, rate: 1000, duration: 30 * time.Second}.run(t.Context(), tr, l)
				good := l.between(5, 30) / 200
				if most = max(most, good); how == "pace" && good < most-0.02 {
					t.Errorf("%s: %.2f of the limit were good, and %.2f of another rule", tt.name, good, most)
				}
				t.Logf("%-12s %-5s: good %.2f, steady %.2f; sends for a good one %.2f; opened %d, failed %d", tt.name, how, l.between(0, 30)/200, good, float64(r.sends)/float64(r.good), opened, r.failed)
			})
		}
	}
}

// TestPaceAtAConcurrencyLimit meets a server that refuses with 503 and a Retry-After what
// it cannot serve at once: ten at 50 ms are 200 a second.
func TestPaceAtAConcurrencyLimit(t *testing.T) {
	atPhase(t, 0, func(t *testing.T) {
		l := &limited{concurrent: 10, latency: 50 * time.Millisecond, status: 503, headers: retryAfter(1)}
		opened := 0
		tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}, opens(&opened)), httpretry.WithPacer(&pace.Pacer{}))
		r := crowd{callers: 500, rate: 1000, duration: 20 * time.Second}.run(t.Context(), tr, l)
		t.Logf("good %.2f, steady %.2f; sends a call %.2f, opened %d", l.between(0, 20)/200, l.between(5, 20)/200, r.perCall(), opened)
		if got := l.between(5, 20) / 200; got < 0.9 || r.perCall() > 1.1 || opened > 0 {
			t.Errorf("%.2f good, %.2f sends a call, opened %d times; want 0.9, 1.1 and never", got, r.perCall(), opened)
		}
	})
}
