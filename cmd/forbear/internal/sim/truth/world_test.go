package truth

import (
	"context"
	"hash/crc32"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pipetest"
	"github.com/forbear-go/forbear/storm"
)

// world is one real run of a scenario.
type world struct {
	s        storm.Scenario
	start    time.Time
	dice     *dice
	services map[string][]*service // the replicas of each
	tally    tally
	// ctx ends with the run: all that waits gives up.
	ctx context.Context
}

// run runs s for real, in a bubble of its own, and returns what it came to. Situations do
// not share the luck of a seed.
func run(t *testing.T, s storm.Scenario, seed uint64) (f figures) {
	s = s.WithDefaults()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{
			s: s, ctx: ctx, start: time.Now(), dice: &dice{r: rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(s.Name)))))}, services: map[string][]*service{},
			tally: tally{bin: s.Bin.D(), bins: make([]bin, s.Duration/s.Bin)},
		}
		for _, v := range s.Services {
			for i := range max(v.Replicas, 1) {
				w.services[v.Name] = append(w.services[v.Name], newService(w, v, i))
			}
		}
		for _, v := range w.replicas() {
			v.connect()
		}
		var users sync.WaitGroup
		for i := range s.Fleets {
			users.Go(func() { w.fleet(&s.Fleets[i]) })
		}
		time.Sleep(s.Duration.D())
		f = w.figures()
		cancel()
		users.Wait()
		for _, v := range w.replicas() {
			v.close()
		}
	})
	return f
}

// now is the time since the start.
func (w *world) now() time.Duration { return time.Since(w.start) }

// sleep waits for d, or less when the run ends. It reports whether the time is over.
func (w *world) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// replicas are the servers of all services.
func (w *world) replicas() []*service {
	return slices.Concat(slices.Collect(maps.Values(w.services))...)
}

// faults are those of that kind which hold now: for server s, or for the load.
func (w *world) faults(s *service, kind storm.FaultKind) iter.Seq[storm.Fault] {
	now := w.now()
	return func(yield func(storm.Fault) bool) {
		for _, f := range w.s.Faults {
			hit := s == nil || f.Service == s.Name && (f.Replicas == 0 || s.replica < f.Replicas)
			if f.Kind == kind && hit && now >= f.At.D() && now < (f.At+f.For).D() && !yield(f) {
				return
			}
		}
	}
}

// fault returns the first of these, and whether there is one. Otherwise its Rate and
// Factor are 0 and 1.
func (w *world) fault(s *service, kind storm.FaultKind) (storm.Fault, bool) {
	for f := range w.faults(s, kind) {
		return f, true
	}
	return storm.Fault{Factor: 1}, false
}

// dice is a source of random numbers for all goroutines of a run.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) float() float64       { d.mu.Lock(); defer d.mu.Unlock(); return d.r.Float64() }
func (d *dice) exponential() float64 { d.mu.Lock(); defer d.mu.Unlock(); return d.r.ExpFloat64() }
func (d *dice) normal() float64      { d.mu.Lock(); defer d.mu.Unlock(); return d.r.NormFloat64() }
func (d *dice) one(of int) int       { d.mu.Lock(); defer d.mu.Unlock(); return d.r.IntN(of) }

// server is an http.Server that is reached by pipes in memory.
type server struct {
	http.Server
	pipes *pipetest.Network
}

func serve(h http.Handler) *server {
	s := &server{Server: http.Server{Handler: h}, pipes: pipetest.New()}
	go func() { _ = s.Serve(s.pipes) }()
	return s
}
