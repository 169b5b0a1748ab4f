package partial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/window"
)

// Load is a number of callers, each of which calls, thinks and calls again. Callers
// wait for each call, so a slow dependency lowers the rate, as it does with real
// clients.
type Load struct {
	Callers int
	Think   time.Duration // the mean; each is drawn from half of it to one and a half
	Warm    time.Duration // how long all went well before; 0 is a cold start
	For     time.Duration // how long calls are made and measured after that
	Seed    uint64
}

// PerSecond returns the calls a second to a dependency that is well, roughly.
func (l Load) PerSecond() float64 { return float64(l.Callers) / l.Think.Seconds() }

// String names the load for logs and subtests: "20 callers, 200/s, cold".
func (l Load) String() string {
	start := "cold"
	if l.Warm > 0 {
		start = "warm"
	}
	return fmt.Sprintf("%d callers, %.0f/s, %s", l.Callers, l.PerSecond(), start)
}

// Run plays the load in virtual time, through a Retryer of its own.
func (l Load) Run(t *testing.T, edge Client, d Dependency, p forbear.Policy) Result {
	t.Helper()
	m := meter{dependency: d()}
	synctest.Test(t, func(t *testing.T) {
		// The windows have slots: each run begins with one, or none comes out
		// like another.
		time.Sleep(slots - time.Since(window.Epoch())%slots)
		m.start = time.Now().Add(l.Warm)
		m.end = m.start.Add(l.For)
		waits := lockedRand{rand: rand.New(rand.NewPCG(l.Seed, 0))}
		r, err := forbear.New("partial", p, forbear.WithObserver(m.observer()), forbear.WithRand(waits.draw))
		if err != nil {
			t.Fatal(err)
		}
		call := edge(r, m.send)
		var wg sync.WaitGroup
		for id := range l.Callers {
			wg.Go(func() { l.caller(t.Context(), id, &m, call) })
		}
		wg.Wait()
	})
	return m.result
}

// slots is a multiple of the width of the slots of all windows of the defaults.
const slots = 2 * time.Second

// caller calls until the time is over. It starts at a random moment within its first
// think time, so that callers do not move in step.
func (l Load) caller(ctx context.Context, id int, m *meter, call func(context.Context) bool) {
	own := rand.New(rand.NewPCG(l.Seed, ^uint64(id)))
	time.Sleep(time.Duration(own.Float64() * float64(l.Think)))
	for n := uint64(0); time.Now().Before(m.end); n++ {
		c := &calling{caller: id, luck: rand.New(rand.NewPCG(l.Seed, uint64(id)<<32|n))}
		m.began(c)
		good := call(context.WithValue(ctx, callingKey{}, c))
		m.ended(c, good)
		time.Sleep(time.Duration((0.5 + own.Float64()) * float64(l.Think)))
	}
}

// lockedRand draws for many goroutines. rand.Rand is not safe for concurrent use,
// and the Retryer of a run serves all callers.
type lockedRand struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func (l *lockedRand) draw() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.Float64()
}
