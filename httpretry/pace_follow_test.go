package httpretry_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/pace"
)

// TestPaceFollows changes a limit from 200 to 50 to 400: each is reached within five
// seconds. From then on the probing costs limits that count in windows a part of one second
// now and then.
func TestPaceFollows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		least float64 // of the limit, in any second after the fifth
		limit func() limiter
	}{
		{"bucket", 0.8, func() limiter { return newBucket(200, 10) }},
		{"fixed", 0.6, func() limiter { return &fixed{rate: 200, length: time.Second} }},
		{"big bucket", 0.8, func() limiter { return newBucket(200, 200) }},
		{"GCRA", 0.7, func() limiter { return newBucket(200, 1) }},
		{"sliding", 0.6, func() limiter { return &sliding{rate: 200} }},
	}[:ringtest.Size(2, 5)] {
		t.Run(tt.name, func(t *testing.T) {
			atPhase(t, 0, func(t *testing.T) {
				l := &limited{limit: tt.limit(), latency: 5 * time.Millisecond}
				opened := 0
				tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}, opens(&opened)), httpretry.WithPacer(&pace.Pacer{}))
				go func() {
					time.Sleep(10 * time.Second)
					l.set(50)
					time.Sleep(12 * time.Second)
					l.set(400)
				}()
				r := crowd{callers: 500, rate: 1000, duration: 34 * time.Second}.run(t.Context(), tr, l)
				for _, at := range []struct {
					from, to int
					rate     float64
				}{{5, 10, 200}, {15, 22, 50}, {27, 34, 400}} {
					mean, worst := l.between(at.from, at.to)/at.rate, l.worst(at.from, at.to, at.rate)
					t.Logf("limit %v: %.2f good, %.2f in the worst second", at.rate, mean, worst)
					if mean < 0.9 || worst < tt.least {
						t.Errorf("limit %v: %.2f of it, and %.2f in one second: %v", at.rate, mean, worst, l.good)
					}
				}
				if r.perCall() > 1.1 || opened > 0 {
					t.Errorf("%.2f sends a call, opened %d times; want 1.1 and never", r.perCall(), opened)
				}
			})
		})
	}
}

// TestPaceOfAMixedDependency has a tenth of the calls go where each is refused: the others
// must not pay for that.
func TestPaceOfAMixedDependency(t *testing.T) {
	for i := range ringtest.Size(1, 5) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			atPhase(t, 0, func(t *testing.T) {
				l := &limited{latency: 5 * time.Millisecond, start: time.Now()}
				l.always = func(req *http.Request) bool { return req.URL.Path == "/limited" }
				tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}), httpretry.WithPacer(&pace.Pacer{}))
				var fine result
				var wg sync.WaitGroup
				wg.Go(func() {
					fine = crowd{callers: 500, rate: 500, duration: 30 * time.Second}.run(t.Context(), tr, l)
				})
				wg.Go(func() {
					crowd{callers: 500, rate: 55, duration: 28 * time.Second, path: func(int) string { return "/limited" }}.run(t.Context(), tr, l)
				})
				wg.Wait()
				if least := 500 * 30 * 97 / 100; fine.good < least {
					t.Errorf("%d of 15,000 calls were good, want %d", fine.good, least)
				}
			})
		})
	}
}

// TestPaceOfAFleet has two gateways behind one limiter, over a network with some jitter:
// without any, they keep step, and the one that is a little ahead takes all. The one that
// comes later finds a limit that is used up. At a fixed window one run alone is uneven by
// chance.
func TestPaceOfAFleet(t *testing.T) {
	lates, runs, lasts := []time.Duration{5 * time.Second}, 1, 60*time.Second
	if ringtest.Nightly() {
		lates, runs, lasts = append(lates, 0), 3, 100*time.Second
	}
	for _, tt := range []struct {
		name  string
		limit func() limiter
	}{
		{"bucket", func() limiter { return newBucket(200, 10) }},
		{"sliding", func() limiter { return &sliding{rate: 200} }},
		{"fixed", func() limiter { return &fixed{rate: 200, length: time.Second} }},
	}[:ringtest.Size(2, 3)] {
		for _, late := range lates {
			t.Run(tt.name+"/"+late.String(), func(t *testing.T) {
				share := 0.0
				for range runs {
					share += paceOfTwo(t, tt.limit(), late, lasts) / float64(runs)
				}
				least := 0.3
				if late > 0 {
					least = 0.2
				}
				if share < least || share > 1-least {
					t.Errorf("shared %.2f to %.2f, want %.2f to %.2f", share, 1-share, least, 1-least)
				}
			})
		}
	}
}

// paceOfTwo returns the first gateway's part of what both were given.
func paceOfTwo(t *testing.T, limit limiter, late, lasts time.Duration) (share float64) {
	atPhase(t, 0, func(t *testing.T) {
		l := &limited{limit: limit, latency: 5 * time.Millisecond, jitter: 5 * time.Millisecond, start: time.Now()}
		var each [2]result
		var wg sync.WaitGroup
		for i := range each {
			wg.Go(func() {
				time.Sleep(late * time.Duration(i))
				tr := httpretry.NewTransport(l, quiet(t, forbear.Policy{}), httpretry.WithPacer(&pace.Pacer{}))
				each[i] = crowd{callers: 100, rate: 1000, duration: lasts - late*time.Duration(i)}.run(t.Context(), tr, l)
			})
		}
		wg.Wait()
		share = float64(each[0].good) / float64(each[0].good+each[1].good)
		sum := l.between(5, int(lasts.Seconds())) / 200
		t.Logf("%.2f and %.2f of the good ones; %.3f of the limit", share, 1-share, sum)
		if sum < 0.95 {
			t.Errorf("%.3f of the limit, want 0.95", sum)
		}
	})
	return share
}
