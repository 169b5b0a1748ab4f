package model

import (
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

func TestFaultsComeDownToConditions(t *testing.T) {
	sec := func(n int64) int64 { return n * int64(time.Second) }
	at := func(from, to time.Duration, f Fault) Fault {
		f.At, f.End = from*time.Second, to*time.Second
		return f
	}
	m := &Model{Faults: []Fault{
		at(1, 3, Fault{Outage: 0.3, Factor: 1}),
		at(2, 4, Fault{Outage: 0.7, Factor: 0.5}),
		at(2, 4, Fault{Factor: 0.5, Failing: [Modes]float64{FailSticky: 0.2}}),
		at(5, 9, Fault{Factor: 0.2, Climbs: true}),
		at(6, 8, Fault{Factor: 0}),
		at(0, 9, Fault{Service: 1, Factor: 1, Cut: 0.4}),
		at(1, 3, Fault{Service: Fleets, Factor: 1, Spike: 3}),
		at(2, 3, Fault{Service: Fleets, Factor: 1, Spike: 2}),
	}}
	for _, tt := range []struct {
		name    string
		service int
		t       int64
		want    Fault
		spike   float64
	}{
		{"before", 0, sec(1) - 1, Fault{Factor: 1}, 1},
		{"one", 0, sec(1), Fault{Factor: 1}, 3},
		{"the product of the losses", 0, sec(2), Fault{Factor: 0.25}, 6},
		{"an end is over", 0, sec(4), Fault{Factor: 1}, 1},
		{"the foot of a climb", 0, sec(5), Fault{Factor: 0.2}, 1},
		{"a pause is nothing at all", 0, sec(7), Fault{}, 1},
		{"almost up", 0, sec(8), Fault{Factor: 0.8}, 1},
		{"the other service", 1, sec(2), Fault{Factor: 1, Cut: 0.4}, 6},
	} {
		got := m.Condition(tt.service, tt.t)
		if d := got.Factor - tt.want.Factor; d > 1e-12 || d < -1e-12 {
			t.Errorf("%s: %v of the capacity, want %v", tt.name, got.Factor, tt.want.Factor)
		}
		got.Factor = tt.want.Factor
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		if got := m.Spike(tt.t); got != tt.spike {
			t.Errorf("%s: load x %v, want %v", tt.name, got, tt.spike)
		}
	}
}

func TestBoundariesStepThroughAClimb(t *testing.T) {
	m := &Model{Faults: []Fault{{At: 1000, End: 2000, Factor: 1}, {At: 0, End: 1000, Climbs: true}}}
	got := m.Boundaries()
	if len(got) != 2+2+99 || !slices.Contains(got, 2000) || !slices.Contains(got, 10) || !slices.Contains(got, 990) {
		t.Errorf("boundaries at %v", got)
	}
}

func TestLoadFailure(t *testing.T) {
	for _, tt := range []struct {
		name       string
		load, want float64
	}{
		{"the nominal load: half of it fails", 1000, 0.5},
		{"twice the load: three quarters", 2000, 0.75},
		{"less than nominal is no better", 500, 0.5},
		{"nothing measured yet", 0, 0.5},
	} {
		if got := LoadFailure(0.5, 1000, tt.load); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A fan-out multiplies the load of all layers below it.
func TestLoadReachesAllLayers(t *testing.T) {
	m := &Model{
		Services: []Service{{Capacity: 5}, {Capacity: 100}, {}},
		Fleets:   make([]Fleet, 1),
		Edges:    []Edge{{To: 0, FanOut: 1, Plan: &Plan{}}, {To: 1, FanOut: 3, Plan: &Plan{}}, {To: 2, FanOut: 2, Plan: &Plan{Breaker: true}}},
		Out:      [][]int{{1}, {2}, nil},
		Nominal:  make([]float64, 3),
	}
	m.Load(0, 4)
	if want := []float64{4, 12, 24}; !slices.Equal(m.Nominal, want) {
		t.Errorf("load %v, want %v", m.Nominal, want)
	}
	if !m.Guarded() || m.Overloaded() {
		t.Errorf("guarded %v, overloaded %v", m.Guarded(), m.Overloaded())
	}
	m.Load(0, 2)
	if !m.Overloaded() {
		t.Error("6 requests a second are not too many for a service of 5")
	}
}

// The Retry-After is a floor; a tenth of it, at most 5 s, spreads the herd.
func TestRefusalHasTheEdgesSpread(t *testing.T) {
	for _, tt := range []struct{ after, spread time.Duration }{
		{0, 0}, {2 * time.Second, 200 * time.Millisecond}, {time.Hour, 5 * time.Second},
	} {
		f := Refusal(tt.after)
		if f.Hint.Floor != tt.after || f.Hint.Spread != tt.spread || f.Class != forbear.ClassTransient {
			t.Errorf("Retry-After of %v: %+v", tt.after, f)
		}
	}
}
