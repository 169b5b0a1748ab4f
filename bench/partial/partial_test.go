package main

import (
	"errors"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// start is when the tests of the models begin; these take the time as an
// argument.
var start = time.Unix(1_000_000, 0)

func TestBeforeOpensAtAQuarterWhileTheBudgetIsSpent(t *testing.T) {
	for _, c := range []struct {
		name  string
		spent time.Time
		want  breaker.State
	}{
		{"budget grants", time.Time{}, breaker.Closed},
		{"budget spent", start, breaker.Open},
		{"spent two seconds ago", start.Add(-2 * time.Second), breaker.Closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &before{spent: c.spent}
			for n := range 20 { // the 17th to the 20th fail, and the first: 5 of 20
				b.record(b.generation, n == 0 || n >= 16, start)
			}
			if b.state != c.want {
				t.Errorf("got %v after 5 failures of 20, want %v", b.state, c.want)
			}
		})
	}
}

func TestBeforeProbes(t *testing.T) {
	b := &before{}
	for range 20 {
		b.record(b.generation, true, start)
	}
	if b.state != breaker.Open || !b.refuses(start.Add(29*time.Second)) {
		t.Fatalf("got %v after 20 failures, want it open for 30 s", b.state)
	}
	later := start.Add(30 * time.Second)
	for n := range beforeProbes {
		generation, ok := b.allow(later)
		if !ok {
			t.Fatalf("probe %d is refused", n+1)
		}
		b.record(generation, false, later)
	}
	if b.state != breaker.Closed || b.n != 0 {
		t.Errorf("got %v with %d attempts counted after five good probes, want it closed with none", b.state, b.n)
	}
}

func TestResilience4jNeedsAHundred(t *testing.T) {
	b := &resilience4j{}
	for n := range 100 {
		if b.state != r4jClosed {
			t.Fatalf("opened after %d attempts", n)
		}
		b.record(b.epoch, n%2 == 0, start)
	}
	if _, ok := b.acquire(start.Add(59 * time.Second)); b.state != r4jOpen || ok {
		t.Fatalf("got state %d, permit %v after 50 failures of 100, want it open for a minute", b.state, ok)
	}
	later := start.Add(time.Minute)
	for n := range r4jProbes {
		epoch, ok := b.acquire(later)
		if !ok {
			t.Fatalf("probe %d is refused", n+1)
		}
		b.record(epoch, n < 4, later)
	}
	if b.state != r4jClosed {
		t.Errorf("got state %d after 4 of 10 probes failed, want it closed", b.state)
	}
}

func TestEnvoyBudget(t *testing.T) {
	const interval = 30 * time.Second
	for _, c := range []struct {
		name         string
		interval     time.Duration
		active, sent int
		later        time.Duration
		want         int
	}{
		{"one under way", 0, 1, 1000, 0, 3},
		{"19 under way", 0, 19, 1000, 0, 3},
		{"20 under way", 0, 20, 1000, 0, 4},
		{"100 under way", 0, 100, 1000, 0, 20},
		{"1000 in the interval", interval, 1, 1000, 26 * time.Second, 200},
		{"all have left the interval", interval, 100, 1000, interval, 3},
		{"a long time ago", interval, 100, 1000, time.Hour, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, got := &envoy{interval: c.interval, active: c.active}, 0
			for range c.sent {
				e.sent(start)
			}
			for e.admit(start.Add(c.later)) {
				got++
			}
			if got != c.want {
				t.Errorf("got %d retries at once, want %d", got, c.want)
			}
		})
	}
}

func TestGoals(t *testing.T) {
	list := []contender{{name: nameForbear}, {name: nameUnbroken}}
	for _, c := range []struct {
		name   string
		fault  fault
		with   figures
		missed bool
	}{
		{"equal", fault{allowed: 0.02}, figures{10_000, 8500, 12_000}, false},
		{"within the noise", fault{allowed: 0.02}, figures{10_000, 8300, 12_000}, false},
		{"under", fault{allowed: 0.02}, figures{10_000, 8000, 12_000}, true},
		{"under, no goal", fault{allowed: -1}, figures{10_000, 2000, 3000}, false},
		{"under, for as long as it is open", fault{allowed: 0.02, opens: true}, figures{10_000, 8000, 12_000}, false},
		{"too many sends", fault{allowed: 0.02}, figures{10_000, 8500, 12_600}, true},
		{"outage", fault{share: 1, allowed: -1}, figures{10_000, 0, 550}, false},
		{"outage that is not noticed", fault{share: 1, allowed: -1}, figures{10_000, 0, 700}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := goals(options{length: time.Minute}, []row{{c.fault, []figures{c.with, {10_000, 8500, 12_000}}}}, list)
			if errors.Is(err, errMissed) != c.missed {
				t.Errorf("got %v, want missed %v", err, c.missed)
			}
		})
	}
}

func TestLabelsStandFree(t *testing.T) {
	var texts []string
	var curves [][]point
	for j, c := range contenders() { // steps at different shares, as breakers make them
		edge := 0.1 + 0.09*float64(j)
		texts = append(texts, looks[c.name].label)
		curves = append(curves, []point{{x(0.05), y(1)}, {x(edge), y(0.98)}, {x(edge + 0.05), y(0.02)}, {x(1), y(0)}})
	}
	at := labels(texts, curves)
	for j := range at {
		b := boxOf(at[j].point, texts[j])
		if b.left < left || b.right > width-right || b.top < top || b.bottom > height-bottom {
			t.Errorf("%s lies outside the plot: %+v", texts[j], b)
		}
		for k := range j {
			if b.overlaps(boxOf(at[k].point, texts[k])) {
				t.Errorf("%s lies on %s", texts[j], texts[k])
			}
		}
	}
}
