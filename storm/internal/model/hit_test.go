package model

import (
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// Of hits that do the same, the greatest counts; each other one is by itself.
func TestFaultsComeDownToHits(t *testing.T) {
	down := func(share float64) Fault { return Fault{End: 10, Outage: share} }
	gone := Fault{End: 10, Failing: [Modes]float64{FailSticky: 0.1}, Failure: Response(404, 0)}
	m := &Model{Faults: []Fault{
		down(0.3),
		down(0.7),
		{End: 10, Outage: 0.5, Method: "POST"},
		{End: 10, Service: 1, Outage: 1},
		{End: 5, Slow: 0.1, SlowTime: time.Second},
		{End: 10, Slow: 0.2, SlowTime: time.Minute},
		gone,
	}}
	both := []Hit{{HitOutage, 0.7, "", 0}, {HitOutage, 0.5, "POST", 2}, {HitSlow, 0.1, "", 4}, {HitSlow, 0.2, "", 5}, {FailSticky, 0.1, "", 6}}
	if got := m.Hits(0, 4, nil); !slices.Equal(got, both) {
		t.Errorf("got %+v, want %+v", got, both)
	}
	if got := m.Hits(0, 5, nil); !slices.Equal(got, slices.Delete(both, 2, 3)) {
		t.Errorf("when the first slow ones are over: got %+v", got)
	}
	if got := m.Hits(0, 10, nil); got != nil {
		t.Errorf("after the end: got %+v", got)
	}
}

// The failure of a limiter is that of a 429 at the HTTP edge.
func TestResponsesAreTheEdges(t *testing.T) {
	for _, tt := range []struct {
		status int
		class  forbear.Class
		label  string
	}{
		{429, forbear.ClassThrottled, "http_429"},
		{404, forbear.ClassTerminal, "http_404"},
		{401, forbear.ClassUnauthorized, "http_401"},
		{504, forbear.ClassTimeout, "http_504"},
		{503, forbear.ClassTransient, "http_503"},
	} {
		f := Response(tt.status, time.Second)
		if f.Class != tt.class || f.Type != tt.label || f.Hint.Floor != time.Second || f.Hint.Spread != 100*time.Millisecond {
			t.Errorf("%d: got %+v", tt.status, f)
		}
	}
}

func TestLimitTakesByTheClock(t *testing.T) {
	l := Limit{Rate: 10, Burst: 2}
	b := l.Tokens()
	const tenth = int64(100 * time.Millisecond)
	for i, tt := range []struct {
		at   int64
		want bool
	}{{0, true}, {0, true}, {0, false}, {tenth / 2, false}, {tenth, true}, {tenth, false}, {50 * tenth, true}, {50 * tenth, true}, {50 * tenth, false}} {
		if got := l.Take(&b, tt.at); got != tt.want {
			t.Errorf("take %d, at %v: %v, want %v", i, time.Duration(tt.at), got, tt.want)
		}
	}
}
