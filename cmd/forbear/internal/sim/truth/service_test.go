package truth

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/storm"
)

// unbounded is the length of a queue without a bound.
const unbounded = 1 << 16

// service is a real server: a number of workers that take requests from one queue.
type service struct {
	storm.Service
	w      *world
	server *server
	queue  chan job
	calls  []*caller
	// last says that sends are counted here: it is the last service of the scenario.
	last bool
}

// job is a request that waits for a worker, which closes done.
type job struct {
	client context.Context
	done   chan struct{}
}

func newService(w *world, v storm.Service) *service {
	s := &service{Service: v, w: w, last: v.Name == w.s.Services[len(w.s.Services)-1].Name}
	bound := unbounded
	switch {
	case v.QueueLength > 0:
		bound = v.QueueLength
	case v.Queue > 0:
		bound = int(v.Queue.Seconds() * v.Capacity)
	}
	s.queue = make(chan job, bound)
	if v.Capacity > 0 {
		for range v.Concurrency {
			go s.worker()
		}
	}
	var h http.Handler = s
	if len(v.Calls) > 0 && !v.Calls[0].Client.Baseline.Oblivious {
		h = httpretry.Inbound(s) // as the guide asks of a service that calls others
	}
	s.server = serve(h)
	return s
}

// connect makes the clients of the services that s calls.
func (s *service) connect() {
	for _, e := range s.Calls {
		c := newCaller(s.w, e.Client, e.Instances, e.To)
		s.calls = append(s.calls, slices.Repeat([]*caller{c}, e.FanOut)...)
	}
}

func (s *service) close() {
	for _, c := range s.calls {
		c.close()
	}
	_ = s.server.Close()
}

// ServeHTTP does the work of a request, and then calls the services below. It does not
// notice that a client has given up.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.last {
		s.w.tally.sent(s.w.now())
	}
	if s.chance(s.w.fault(s.Name, storm.Outage).Rate) || !s.work(r.Context()) {
		if s.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.RetryAfter.Seconds())))
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if s.fails(r) {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if !s.below(r.Context()) {
		w.WriteHeader(http.StatusBadGateway)
	}
}

// below makes the calls to the services below, all at once, and reports whether all were good.
func (s *service) below(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(s.w.ctx, cancel)()
	var failed atomic.Bool
	var all sync.WaitGroup
	for _, c := range s.calls {
		all.Go(func() {
			if !c.call(ctx).good {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	return !failed.Load()
}

// work waits for the work on a request. It is false for one that is refused: the queue is
// full, or longer than the service finds reasonable.
func (s *service) work(client context.Context) bool {
	if s.Capacity == 0 {
		return s.w.sleep(s.time())
	}
	wait := float64(len(s.queue)) / s.Capacity / s.speed()
	if s.Shed > 0 && wait > s.Shed.Seconds() {
		return false
	}
	j := job{client, make(chan struct{})}
	select {
	case s.queue <- j:
	default:
		return false
	}
	select {
	case <-j.done:
		return true
	case <-s.w.ctx.Done():
		return false
	}
}

// worker works on one request after the other.
func (s *service) worker() {
	for {
		select {
		case j := <-s.queue:
			s.pause()
			if !s.DropExpired || j.client.Err() == nil {
				s.w.sleep(s.time())
			}
			close(j.done)
		case <-s.w.ctx.Done():
			return
		}
	}
}

// pause waits until the service may begin to work.
func (s *service) pause() {
	if f := s.w.fault(s.Name, storm.Pause); f.Kind != "" {
		s.w.sleep((f.At + f.For).D() - s.w.now())
	}
}

// speed is the part of the capacity that the faults leave.
func (s *service) speed() float64 {
	left := s.w.fault(s.Name, storm.Brownout).Factor
	if f := s.w.fault(s.Name, storm.SlowStart); f.Kind != "" {
		left *= f.Factor + (1-f.Factor)*(s.w.now()-f.At.D()).Seconds()/f.For.Seconds()
	}
	return left
}

// time draws how long the work on a request takes that begins now.
func (s *service) time() time.Duration {
	mean := float64(s.Time)
	if s.Capacity > 0 {
		mean = float64(s.Concurrency) / s.Capacity * 1e9
	}
	mean /= s.speed()
	switch s.Law {
	case "exponential":
		mean *= s.w.dice.exponential()
	case "lognormal":
		spread := math.Log(1 + s.CV*s.CV)
		mean *= math.Exp(math.Sqrt(spread)*s.w.dice.normal() - spread/2)
	}
	return time.Duration(mean)
}

// fails decides whether a request that was worked on fails.
func (s *service) fails(r *http.Request) bool {
	f := s.w.fault(s.Name, storm.Errors)
	if f.Mode == storm.Sticky {
		luck, err := strconv.ParseFloat(r.Header.Get(headerLuck), 64)
		return err != nil || luck < f.Rate
	}
	return s.chance(f.Rate)
}

func (s *service) chance(p float64) bool { return p > 0 && s.w.dice.float() < p }
