package forbeartest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear/forbeartest"
)

func TestJitterFault(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sample := func(n int, low, high float64) []time.Duration {
		waits := make([]time.Duration, n)
		for i := range waits {
			waits[i] = time.Duration((low + (high-low)*rng.Float64()) * float64(time.Second))
		}
		return waits
	}
	for _, tt := range []struct {
		name  string
		waits []time.Duration
		want  forbeartest.Fault
	}{
		{"full", sample(30, 0, 1), forbeartest.FaultNone},
		{"equal", sample(30, 0.5, 1), forbeartest.FaultEqual},
		{"plus or minus 20 %", sample(30, 0.8/1.2, 1), forbeartest.FaultNarrow},
		{"fixed", sample(30, 1, 1), forbeartest.FaultFixed},
		{"fixed, with noise", sample(30, 0.995, 1), forbeartest.FaultFixed},
		{"too few", sample(5, 0.5, 1), forbeartest.FaultNone},
		{"none", nil, forbeartest.FaultNone},
	} {
		if got := forbeartest.JitterFault(tt.waits, time.Second); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSequenceFault(t *testing.T) {
	ms := func(waits ...int) (d []time.Duration) {
		for _, w := range waits {
			d = append(d, time.Duration(w)*time.Millisecond)
		}
		return d
	}
	for _, tt := range []struct {
		name  string
		waits []time.Duration
		want  forbeartest.Fault
	}{
		{"fixed", ms(1000, 1000, 1003), forbeartest.FaultFixed},
		{"doubling", ms(1000, 2000, 4000), forbeartest.FaultExact},
		{"doubling to a cap", ms(1000, 2000, 4000, 5000, 5000), forbeartest.FaultExact},
		{"linear", ms(500, 1000, 1500, 2000), forbeartest.FaultExact},
		{"full", ms(370, 220, 1760, 1640, 480), forbeartest.FaultNone},
		{"rising by chance", ms(370, 820, 1760, 1940), forbeartest.FaultNone},
		{"too few", ms(1000, 2000), forbeartest.FaultNone},
	} {
		if got := forbeartest.SequenceFault(tt.waits); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
