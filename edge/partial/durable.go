package partial

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Work is durable work, piece by piece, on a dependency that fails by luck. The
// luck is each attempt's own, and the same for all who try it: two runs differ in
// nothing but what they are protected by.
type Work struct {
	// Share of the attempts fails, 0 to 1, so long after the beginning.
	Share func(since time.Duration) float64

	mu     sync.Mutex
	began  time.Time
	tries  map[string]int
	done   map[string]bool
	Arrive []time.Duration // when pieces were done, after the beginning
	Sends  int
}

// Always is a share that does not change. It suits [Work.Allowed], which assumes a
// share that stays.
func Always(share float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return share }
}

// Begin begins now, with nothing done. It must be called inside the bubble, since
// the time is virtual there.
func (w *Work) Begin() {
	w.began, w.tries, w.done = time.Now(), map[string]int{}, map[string]bool{}
	w.Arrive, w.Sends = nil, 0
}

// Try notes one more attempt of a piece, and reports whether that does it. A piece
// that was done may not be tried again: durable work that succeeds twice fails the
// test.
func (w *Work) Try(t *testing.T, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Since(w.began)
	w.Sends++
	w.tries[id]++
	if fate(id, w.tries[id]) < w.Share(since) {
		return false
	}
	if w.done[id] {
		t.Errorf("%s was done twice", id)
	}
	w.done[id] = true
	w.Arrive = append(w.Arrive, since)
	return true
}

// fate is the luck of an attempt, 0 to 1: it fails when that is small. A hash gives
// it without shared state, so concurrent attempts cannot disturb each other's luck.
func fate(id string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
}

// Firsts returns the number of first attempts.
func (w *Work) Firsts() int { return len(w.tries) }

// Allowed returns how many of the pieces so many attempts allow to be done.
func (w *Work) Allowed(ids []string, attempts int) (n int) {
	for _, id := range ids {
		for a := range attempts {
			if fate(id, a+1) >= w.Share(0) {
				n++
				break
			}
		}
	}
	return n
}

// By returns when that many pieces had been done. A number that was never reached
// takes forever: 1<<62 ns, so that comparisons fail and need no case of their own.
func (w *Work) By(n int) time.Duration {
	if n > len(w.Arrive) {
		return 1 << 62
	}
	slices.Sort(w.Arrive)
	return w.Arrive[n-1]
}

// Beside holds that all that the attempts allow is done, 99 % of it nearly as
// soon as in the ideal run, which knows no budget and no breaker, with as few
// sends; and that these are bounded by the first attempts and what succeeds.
func (w *Work) Beside(t *testing.T, ideal *Work, allowed int) {
	t.Helper()
	most := allowed * 99 / 100
	t.Logf("99 %% after %v, ideally %v; all after %v, ideally %v; sends %d, ideally %d",
		w.By(most), ideal.By(most), w.By(allowed), ideal.By(allowed), w.Sends, ideal.Sends)
	if len(ideal.Arrive) != allowed || len(w.Arrive) != allowed {
		t.Errorf("%d and ideally %d done of the %d that the attempts allow", len(w.Arrive), len(ideal.Arrive), allowed)
	}
	if w.By(most) > ideal.By(most)*13/10 {
		t.Errorf("99 %% after %v, want at most 1.3 times the ideal %v", w.By(most), ideal.By(most))
	}
	if w.Sends > ideal.Sends*11/10 {
		t.Errorf("%d sends, want at most 1.1 times the ideal %d", w.Sends, ideal.Sends)
	}
	if bound := w.Firsts()*12/10 + len(w.Arrive); w.Sends > bound {
		t.Errorf("%d sends, want at most 1.2 of the first attempts and what succeeded: %d", w.Sends, bound)
	}
}
