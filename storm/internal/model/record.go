package model

// Record is what happens in a run, counted in bins. The engine that fills it
// owns it until the run is over. Counts are those of fleets' calls; what layers
// below make of them is in Services.
type Record struct {
	Bins     []Tally
	Services []ServiceTally
	// Now is the bin that is open.
	Now Tally
	// Refused are the calls that ended, and Postponed those that wait,
	// by reason.
	Refused, Postponed [64]float64
	// Throttled are those that their client's throttle has dropped.
	Throttled float64

	Events int64
	// Stopped says that the run was broken off.
	Stopped bool

	// Begun are the calls that began in each bin of the whole run, by how they ended.
	Begun []Ends

	bin     int64      // in ns
	latency *histogram // of the open bin
	total   *histogram // of the closed ones
	sum     float64    // of latencies, in seconds
	want    int        // bins of the whole run
}

// Ends counts how calls ended.
type Ends struct{ Good, Failed float64 }

// Tally counts one bin.
type Tally struct {
	Calls float64
	// Turned are the calls that were turned away before their first attempt.
	Turned float64
	Retry  float64
	Good   float64
	Failed float64
	// Wasted are the requests that were served although no client waited.
	Wasted float64
	// Queue is the longest of all services, in seconds of nominal capacity.
	Queue float64
	// Budget is the share of the budgets that is used, and Breaker that of the
	// breakers that are not closed, at the end of the bin.
	Budget, Breaker float64
	// P50 and P99 are latencies of good calls, in seconds; NaN without any.
	P50, P99 float64
}

// Attempts returns how many were sent.
func (t *Tally) Attempts() float64 { return t.Calls - t.Turned + t.Retry }

// ServiceTally counts one service over the run, the attempts of all callers.
type ServiceTally struct {
	Arrivals, Retries, Served, Wasted, Shed float64
	// MaxQueue is the longest queue, in seconds of nominal capacity.
	MaxQueue float64
	// Current are the arrivals in the open bin, Load those by closed bin.
	Current float64
	Load    []float64
}

// NewRecord returns the empty record of a run of m.
func NewRecord(m *Model) *Record {
	n := int((m.Duration + m.Bin - 1) / m.Bin)
	r := &Record{latency: newHistogram(), total: newHistogram(), want: n, bin: int64(m.Bin), Begun: make([]Ends, n)}
	r.Bins = make([]Tally, 0, n+1)
	r.Services = make([]ServiceTally, len(m.Services))
	for i := range r.Services {
		r.Services[i].Load = make([]float64, 0, n+1)
	}
	return r
}

// Arrived counts an attempt that reaches its service.
func (r *Record) Arrived(service int32, retry bool) {
	s := &r.Services[service]
	s.Arrivals++
	s.Current++
	if retry {
		s.Retries++
	}
}

// Wasted counts a request that was served although no client waited for it.
func (r *Record) Wasted(service int32) {
	r.Services[service].Wasted++
	r.Now.Wasted++
}

// Finish counts the end of a fleet's call, which began at start and took latency, in ns.
func (r *Record) Finish(ok bool, start, latency int64) {
	begun := &r.Begun[min(int(start/r.bin), len(r.Begun)-1)]
	if !ok {
		r.Now.Failed++
		begun.Failed++
		return
	}
	r.Now.Good++
	begun.Good++
	r.latency.add(latency)
	r.sum += float64(latency) / 1e9
}

// Queue records how long the queue of a service is, in seconds.
func (r *Record) Queue(service int, seconds float64) {
	s := &r.Services[service]
	s.MaxQueue = max(s.MaxQueue, seconds)
	r.Now.Queue = max(r.Now.Queue, seconds)
}

// CloseBin ends the open bin, with the share of the budgets that is used and of
// the breakers that are not closed. It does nothing when all bins are closed.
func (r *Record) CloseBin(budget, breaker float64) {
	if len(r.Bins) == r.want {
		return
	}
	t := r.Now
	t.Budget, t.Breaker = budget, breaker
	t.P50, t.P99 = r.latency.quantile(0.5), r.latency.quantile(0.99)
	r.latency.reset(r.total)
	r.Bins = append(r.Bins, t)
	r.Now = Tally{}
	for i := range r.Services {
		s := &r.Services[i]
		s.Load = append(s.Load, s.Current)
		s.Current = 0
	}
}

// Latency returns the latencies of all good calls in the closed bins, in
// seconds; NaN when there was none.
func (r *Record) Latency() (p50, p99, mean float64) {
	return r.total.quantile(0.5), r.total.quantile(0.99), r.sum / r.total.total
}
