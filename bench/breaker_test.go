package bench

import (
	"fmt"
	"testing"
	"time"
)

// A call under forbear's breaker and budget together costs no more than one
// under a breaker alone, by the CPU of the process: see the head of
// gate_test.go for how it is compared.
func TestBreakerAndBudgetNoSlowerThanABreakerAlone(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			within(t, func() (bool, string) {
				got, err := Measure(breakers(), workers, 9, 30*time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				if n := got[0].Allocs; n != 0 {
					t.Errorf("%d allocations, want 0", n)
				}
				ratio := got[0].CPU / got[1].CPU
				return ratio <= 1, fmt.Sprintf("%d goroutines: forbear %.1f ns, gobreaker %.1f ns: %.2f", workers, got[0].CPU, got[1].CPU, ratio)
			})
		})
	}
}

func BenchmarkBreakerAndBudget(b *testing.B) {
	for _, p := range breakers() {
		b.Run(p.Name, func(b *testing.B) {
			work := p.New()
			b.ReportAllocs()
			for b.Loop() {
				_ = work()
			}
		})
		b.Run(p.Name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				work := p.New()
				for pb.Next() {
					_ = work()
				}
			})
		})
	}
}
