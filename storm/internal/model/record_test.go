package model

import (
	"math"
	"testing"
	"time"
)

func TestHistogramIsNarrow(t *testing.T) {
	for _, ns := range []int64{0, 1, 63, 64, 1e3, 123_456, 1e9, 86_400e9, math.MaxInt64} {
		h := newHistogram()
		h.add(ns)
		got := h.quantile(0.5) * 1e9
		if math.Abs(got-float64(ns)) > 0.016*float64(ns)+1e-6 {
			t.Errorf("%d ns came out as %.0f", ns, got)
		}
	}
	if h := newHistogram(); !math.IsNaN(h.quantile(0.5)) {
		t.Error("an empty histogram has a median")
	}
}

func TestHistogramsAddUp(t *testing.T) {
	bin, sum := newHistogram(), newHistogram()
	for range 3 {
		for ns := range int64(100) {
			bin.add(ns * 1e6)
		}
		bin.reset(sum)
	}
	if bin.total != 0 || sum.total != 300 {
		t.Errorf("%v left, %v in all, want 0 and 300", bin.total, sum.total)
	}
	if got := sum.quantile(0.5); math.Abs(got-0.05) > 0.002 {
		t.Errorf("median %v s, want 0.05", got)
	}
	bin.add(1e9)
	if got := bin.quantile(0.01); math.Abs(got-1) > 0.02 {
		t.Errorf("a histogram that was reset still knows of %v s", got)
	}
}

func TestRecordClosesItsBins(t *testing.T) {
	m := &Model{Duration: 250 * time.Millisecond, Bin: 100 * time.Millisecond, Services: make([]Service, 1)}
	r := NewRecord(m)
	if p50, _, _ := r.Latency(); !math.IsNaN(p50) {
		t.Error("a latency before any call has ended")
	}
	for i := range 5 {
		r.Now.Calls++
		r.Arrived(0, i > 0)
		r.Services[0].Served++
		if i == 2 {
			r.Wasted(0)
		}
		r.Finish(i != 1, 0, int64(i+1)*1e6)
		r.Queue(0, float64(i))
		r.CloseBin(0.5, 0.25)
	}
	if len(r.Bins) != 3 {
		t.Fatalf("%d bins, want 3 of which the last is short", len(r.Bins))
	}
	for i, want := range []Tally{
		{Calls: 1, Good: 1, Queue: 0, Budget: 0.5, Breaker: 0.25},
		{Calls: 1, Failed: 1, Queue: 1, Budget: 0.5, Breaker: 0.25},
		{Calls: 1, Good: 1, Wasted: 1, Queue: 2, Budget: 0.5, Breaker: 0.25},
	} {
		got := r.Bins[i]
		if math.IsNaN(got.P50) != (want.Good == 0) {
			t.Errorf("bin %d: median %v of %v good calls", i, got.P50, want.Good)
		}
		got.P50, got.P99 = 0, 0
		if got != want {
			t.Errorf("bin %d: got %+v, want %+v", i, got, want)
		}
	}
	if s := r.Services[0]; s.Arrivals != 5 || s.Retries != 4 || s.Wasted != 1 || s.MaxQueue != 4 || len(s.Load) != 3 {
		t.Errorf("service: %+v", s)
	}
}

// Attempts are the calls that were not turned away, and the retries.
func TestAttempts(t *testing.T) {
	if got := (&Tally{Calls: 10, Turned: 3, Retry: 5}).Attempts(); got != 12 {
		t.Errorf("%v attempts, want 12", got)
	}
}

// What is older than ten closed tenths of a second does not count.
func TestLoadMeterForgets(t *testing.T) {
	var l LoadMeter
	for range 10 {
		l.Add(7)
		if l.Advance(); l.Rate() > 70 {
			t.Fatalf("rate %v", l.Rate())
		}
	}
	if l.Rate() != 70 {
		t.Errorf("rate %v after a second, want 70", l.Rate())
	}
	for range 10 {
		l.Advance()
	}
	if l.Rate() != 0 {
		t.Errorf("rate %v after a quiet second, want 0", l.Rate())
	}
}
