package truth

import (
	"cmp"
	"context"
	"io"
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

// service is a real server, one replica of a service: a number of workers that take
// requests from one queue.
type service struct {
	storm.Service
	w       *world
	replica int
	server  *server
	tokens  tokens
	queue   chan job
	calls   []*caller
	// last says that sends are counted here: it is the last service of the scenario.
	last bool
}

// job is a request that waits for a worker, which closes done.
type job struct {
	client context.Context
	done   chan struct{}
}

// newService starts a replica of v, which has its part of all that v has.
func newService(w *world, v storm.Service, replica int) *service {
	n := max(v.Replicas, 1)
	v.Capacity, v.Concurrency, v.QueueLength = v.Capacity/float64(n), v.Concurrency/n, v.QueueLength/n
	v.Limit.Rate, v.Limit.Burst = v.Limit.Rate/float64(n), v.Limit.Burst/float64(n)
	if v.Capacity > 0 && v.Quantiles != nil {
		v.Concurrency = max(1, int(math.Round(v.Capacity*meanTime(v.Quantiles)/1e9)))
	}
	s := &service{Service: v, w: w, replica: replica, last: v.Name == w.s.Services[len(w.s.Services)-1].Name}
	s.tokens = tokens{left: v.Limit.Burst}
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
	if v.Timeout > 0 {
		h = http.TimeoutHandler(h, v.Timeout.D(), "")
	}
	if len(v.Calls) > 0 && !v.Calls[0].Client.Baseline.Oblivious {
		h = httpretry.Inbound(h) // as the guide asks of a service that calls others
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
	_, _ = io.Copy(io.Discard, r.Body)
	if f, ok := s.fails(r, storm.Outage); ok {
		status, after := cmp.Or(f.Status, http.StatusServiceUnavailable), f.RetryAfter
		if status == http.StatusServiceUnavailable {
			after = cmp.Or(after, s.RetryAfter)
		}
		fail(w, status, after)
		return
	}
	if s.Limit.Rate > 0 && !s.tokens.take(s.Limit, s.w.now()) {
		fail(w, http.StatusTooManyRequests, s.Limit.RetryAfter)
		return
	}
	if !s.work(r.Context()) {
		fail(w, http.StatusServiceUnavailable, s.RetryAfter)
		return
	}
	if f, ok := s.fails(r, storm.Errors); ok {
		fail(w, cmp.Or(f.Status, http.StatusInternalServerError), f.RetryAfter)
		return
	}
	if !s.below(r.Context()) {
		w.WriteHeader(http.StatusBadGateway)
	}
}

// fail responds with that status.
func fail(w http.ResponseWriter, status int, retryAfter storm.Duration) {
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	w.WriteHeader(status)
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
	if f, ok := s.w.fault(s, storm.Pause); ok {
		s.w.sleep((f.At + f.For).D() - s.w.now())
	}
}

// speed is the part of the capacity that the faults leave.
func (s *service) speed() float64 {
	f, _ := s.w.fault(s, storm.Brownout)
	left := f.Factor
	if f, ok := s.w.fault(s, storm.SlowStart); ok {
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
	if f, _ := s.w.fault(s, storm.Slow); s.w.dice.float() < f.Rate {
		return time.Duration(float64(f.Time) / s.speed())
	}
	mean /= s.speed()
	if s.Quantiles != nil {
		return time.Duration(timeOf(s.Quantiles, s.w.dice.float()) / s.speed())
	}
	switch s.Law {
	case "exponential":
		mean *= s.w.dice.exponential()
	case "lognormal":
		spread := math.Log(1 + s.CV*s.CV)
		mean *= math.Exp(math.Sqrt(spread)*s.w.dice.normal() - spread/2)
	}
	return time.Duration(mean)
}

// timeOf returns the time in ns that the part u of the requests takes at most: between
// quantiles, and beyond them, its logarithm goes with the normal distribution.
func timeOf(known []storm.Quantile, u float64) float64 {
	z := func(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }
	i, last := 1, len(known)-1
	for i < last && u > known[i].Q {
		i++
	}
	from, to := known[i-1], known[i]
	part := (z(u) - z(from.Q)) / (z(to.Q) - z(from.Q))
	return min(float64(from.Time)*math.Pow(float64(to.Time)/float64(from.Time), part), 10*float64(known[last].Time))
}

// meanTime returns the mean of such times in ns.
func meanTime(known []storm.Quantile) (mean float64) {
	const n = 100_000
	for i := range n {
		mean += timeOf(known, (float64(i)+0.5)/n) / n
	}
	return mean
}

// fails returns the fault of that kind which hits a request. What faults do adds up: one
// random number decides on all of them, which is that of the call where they are sticky.
func (s *service) fails(r *http.Request, kind storm.FaultKind) (storm.Fault, bool) {
	luck := s.w.dice.float()
	for f := range s.w.faults(s, kind) {
		if f.Mode == storm.Sticky {
			luck, _ = strconv.ParseFloat(r.Header.Get(headerLuck), 64)
		}
		if f.Method != "" && f.Method != r.Method {
			continue
		}
		if luck < f.Rate {
			return f, true
		}
		luck -= f.Rate
	}
	return storm.Fault{}, false
}

// tokens is the bucket of a limit.
type tokens struct {
	mu   sync.Mutex
	left float64
	at   time.Duration
}

// take takes a token now, if there is one.
func (t *tokens) take(l storm.Limit, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.at = min(l.Burst, t.left+l.Rate*(now-t.at).Seconds()), now
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}
