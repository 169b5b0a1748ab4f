package storm

import (
	"math"
	"time"

	"github.com/forbear-go/forbear"
)

// Result is what a run came to. It holds nothing of the machine or the moment:
// the same scenario and seed give the same Result.
type Result struct {
	Scenario string     `json:"scenario"`
	Engine   EngineKind `json:"engine"`
	Seed     uint64     `json:"seed"`
	Duration Duration   `json:"duration"`
	Bin      Duration   `json:"bin"`
	// Step is the cohort engine's time step.
	Step Duration `json:"step,omitzero"`
	// Scale says that one of so many requests was run; 0 is all of them.
	Scale float64 `json:"scale,omitzero"`
	// Notes say where the result should not be trusted, and why.
	Notes    []string        `json:"notes,omitempty"`
	Summary  Summary         `json:"summary"`
	Series   Series          `json:"series"`
	Services []ServiceResult `json:"services"`
	// Trigger is when the first fault begins and the last one ends.
	Trigger *[2]Duration `json:"trigger,omitempty"`
	// Stopped says that the run was broken off.
	Stopped bool `json:"stopped,omitzero"`

	// refusals are the attempts that breakers refused.
	refusals float64

	// Events is the number of events of the exact engine, or the number of
	// steps of the cohort engine; of both runs, when there were two.
	Events int64 `json:"events"`
	// Wall is how long the run took.
	Wall time.Duration `json:"-"`
}

// Summary is a run in a few numbers. Latencies are those of good calls, from
// their first attempt, in milliseconds.
type Summary struct {
	Calls    float64 `json:"calls"`
	Attempts float64 `json:"attempts"`
	Retries  float64 `json:"retries"`
	Good     float64 `json:"good"`
	Failed   float64 `json:"failed"`
	// Multiplier is Attempts over Calls.
	Multiplier float64 `json:"multiplier"`
	// PeakMultiplier is the greatest multiplier of any second or bin.
	PeakMultiplier float64 `json:"peak_multiplier"`
	// FinalMultiplier and FinalGoodput are those of the last tenth of the run;
	// goodput as a part of the load.
	FinalMultiplier float64 `json:"final_multiplier"`
	FinalGoodput    float64 `json:"final_goodput"`
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
	Mean            float64 `json:"mean_ms"`
	MaxQueue        float64 `json:"max_queue_s"`
	// Wasted is the part of the services' work whose caller had given up.
	Wasted float64 `json:"wasted"`
	// BudgetRefused and BreakerRefused are calls that ended for that reason.
	BudgetRefused  float64 `json:"budget_refused"`
	BreakerRefused float64 `json:"breaker_refused"`
	// Postponed is how often calls of durable kinds were put off: the budget was
	// spent, or the breaker open. Only the exact engine puts off.
	Postponed float64 `json:"postponed"`
	// FaultCost is the part of the calls, 0 to 1, that fail without any breaker
	// while the fault lasts; BreakerCost the part that ends well then, and does
	// not with the breakers. Both are 0 when breakers refused next to nothing.
	FaultCost   float64 `json:"fault_cost"`
	BreakerCost float64 `json:"breaker_cost"`
	// Verdict is steady, recovered, self-inflicted, metastable, overloaded or
	// undecided.
	Verdict Verdict `json:"verdict"`
	// Recovery is the time from the end of the last fault until the goodput is
	// back for good; -1 when it is not.
	Recovery float64 `json:"recovery_s"`
}

// Verdict says how a run ended.
type Verdict string

// The verdicts.
const (
	// Steady: no trouble. There is no fault, or one that fails a part of the
	// attempts to the end of the run, and no fewer calls end well then than
	// would without retries.
	Steady     Verdict = "steady"
	Recovered  Verdict = "recovered"  // the goodput came back
	Metastable Verdict = "metastable" // the fault is gone and the trouble stays
	Overloaded Verdict = "overloaded" // trouble without a fault
	Undecided  Verdict = "undecided"  // too little time after the fault
	// SelfInflicted: while the fault lasts, the circuit breakers cost more calls
	// than it does. Summary.BreakerCost is greater than Summary.FaultCost, by
	// more than chance: the calls lost to the breakers are those that end well in
	// the same run without any.
	SelfInflicted Verdict = "self-inflicted"
)

// Series holds one number per bin: rates in requests a second, latencies in
// milliseconds (NaN, null in JSON, where no call ended well).
type Series struct {
	// Offered are the calls; Fresh the first attempts that were sent: without
	// those that a breaker or a throttle turned away.
	Offered    []float64 `json:"offered"`
	Fresh      []float64 `json:"fresh"`
	Retry      []float64 `json:"retry"`
	Good       []float64 `json:"good"`
	Failed     []float64 `json:"failed"`
	Multiplier []float64 `json:"multiplier"`
	P50        []number  `json:"p50_ms"`
	P99        []number  `json:"p99_ms"`
	Queue      []float64 `json:"queue_s"`
	Budget     []float64 `json:"budget"`
	Breaker    []float64 `json:"breaker"`
	Wasted     []float64 `json:"wasted"`
}

// ServiceResult is one service's part.
type ServiceResult struct {
	Name     string  `json:"name"`
	Arrivals float64 `json:"arrivals"`
	Retries  float64 `json:"retries"`
	Served   float64 `json:"served"`
	Wasted   float64 `json:"wasted"`
	Shed     float64 `json:"shed"`
	// PerCall is arrivals per call of a fleet: what the layers above make of
	// one request.
	PerCall  float64   `json:"per_call"`
	MaxQueue float64   `json:"max_queue_s"`
	Load     []float64 `json:"load"`
}

// number is a float that is null in JSON when it is not a number.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) {
		return []byte("null"), nil
	}
	return appendNumber(nil, float64(n)), nil
}

// tally counts one bin. Masses may be fractions.
type tally struct {
	calls, turned, retry, good, failed, wasted, queue, budget, breaker float64
	p50, p99                                                           float64
}

// attempts returns how many were sent.
func (t *tally) attempts() float64 { return t.calls - t.turned + t.retry }

// serviceTally counts one service over the run; load is per bin.
type serviceTally struct {
	arrivals, retries, served, wasted, shed, maxQueue float64
	current                                           float64
	load                                              []float64
}

// recorder gathers what happens, in bins.
type recorder struct {
	m        *model
	bin      int64
	now      tally
	bins     []tally
	services []serviceTally
	latency  *histogram // of the bin
	total    *histogram
	sum      float64 // of latencies in seconds
	reasons  [64]float64
	puts     [64]float64
	want     int
}

func newRecorder(m *model) *recorder {
	n := int((m.s.Duration + m.s.Bin - 1) / m.s.Bin)
	r := &recorder{m: m, bin: int64(m.s.Bin), latency: newHistogram(), total: newHistogram(), want: n}
	r.bins = make([]tally, 0, n+1)
	r.services = make([]serviceTally, len(m.s.Services))
	for i := range r.services {
		r.services[i].load = make([]float64, 0, n+1)
	}
	return r
}

func (r *recorder) begun() { r.now.calls++ }

// turnedAway notes n calls that ended before their first attempt.
func (r *recorder) turnedAway(n float64) { r.now.turned += n }

func (r *recorder) attempted(retry bool) {
	if retry {
		r.now.retry++
	}
}

func (r *recorder) arrived(service int32, retry bool) {
	s := &r.services[service]
	s.arrivals++
	s.current++
	if retry {
		s.retries++
	}
}

func (r *recorder) served(service int32, stale bool) {
	s := &r.services[service]
	s.served++
	if stale {
		s.wasted++
		r.now.wasted++
	}
}

func (r *recorder) shed(service int32)                  { r.services[service].shed++ }
func (r *recorder) refused(x forbear.Reason, n float64) { r.reasons[x] += n }

// postponed notes that a call is put off for the given reason.
func (r *recorder) postponed(x forbear.Reason) { r.puts[x]++ }

// finished notes the end of n calls of a fleet.
func (r *recorder) finished(ok bool, latency int64, n float64) {
	if !ok {
		r.now.failed += n
		return
	}
	r.now.good += n
	r.latency.add(latency, n)
	r.sum += float64(latency) / 1e9 * n
}

func (r *recorder) queue(service int, seconds float64) {
	s := &r.services[service]
	s.maxQueue = max(s.maxQueue, seconds)
	r.now.queue = max(r.now.queue, seconds)
}

func (r *recorder) closeBin(budget, breaker float64) {
	if len(r.bins) == r.want {
		return
	}
	t := r.now
	t.budget, t.breaker = budget, breaker
	t.p50, t.p99 = r.latency.quantile(0.5), r.latency.quantile(0.99)
	r.latency.reset(r.total)
	r.bins = append(r.bins, t)
	r.now = tally{}
	for i := range r.services {
		s := &r.services[i]
		s.load = append(s.load, s.current)
		s.current = 0
	}
}

// result turns the counts into rates and judges them.
func (r *recorder) result(engine EngineKind) *Result {
	m := r.m
	res := &Result{Scenario: m.s.Name, Engine: engine, Seed: m.s.Seed, Duration: m.s.Duration, Bin: m.s.Bin}
	if begin, end, ok := m.trigger(); ok {
		res.Trigger = &[2]Duration{Duration(begin), Duration(end)}
	}
	r.series(res)
	r.summary(&res.Summary)
	res.refusals = r.reasons[forbear.ReasonBreakerOpen] + r.puts[forbear.ReasonBreakerOpen]
	for i := range r.services {
		s := &r.services[i]
		v := ServiceResult{
			Name: m.s.Services[i].Name, Arrivals: s.arrivals, Retries: s.retries, Served: s.served,
			Wasted: s.wasted, Shed: s.shed, MaxQueue: s.maxQueue,
			PerCall: s.arrivals / max(res.Summary.Calls, 1),
		}
		for _, n := range s.load {
			v.Load = append(v.Load, n*1e9/float64(r.bin))
		}
		res.Services = append(res.Services, v)
	}
	judge(res, m.patience(), m.lasting())
	if res.Summary.Verdict == Metastable && m.overloaded() {
		res.Summary.Verdict = Overloaded // it would not hold without the fault
	}
	return res
}

func (r *recorder) series(res *Result) {
	perSecond := 1e9 / float64(r.bin)
	s := &res.Series
	for i := range r.bins {
		b := &r.bins[i]
		s.Offered = append(s.Offered, b.calls*perSecond)
		s.Fresh = append(s.Fresh, (b.calls-b.turned)*perSecond)
		s.Retry = append(s.Retry, b.retry*perSecond)
		s.Good = append(s.Good, b.good*perSecond)
		s.Failed = append(s.Failed, b.failed*perSecond)
		m := 1.0
		if b.calls > 0 {
			m = b.attempts() / b.calls
		} else if b.retry > 0 {
			m = 0
		}
		s.Multiplier = append(s.Multiplier, m)
		s.P50 = append(s.P50, number(b.p50*1e3))
		s.P99 = append(s.P99, number(b.p99*1e3))
		s.Queue = append(s.Queue, b.queue)
		s.Budget = append(s.Budget, b.budget)
		s.Breaker = append(s.Breaker, b.breaker)
		s.Wasted = append(s.Wasted, b.wasted*perSecond)
	}
}

func (r *recorder) summary(s *Summary) {
	for i := range r.bins {
		b := &r.bins[i]
		s.Calls += b.calls
		s.Attempts += b.attempts()
		s.Retries += b.retry
		s.Good += b.good
		s.Failed += b.failed
		s.MaxQueue = max(s.MaxQueue, b.queue)
	}
	s.Multiplier = s.Attempts / max(s.Calls, 1e-12)
	var work, wasted float64
	for i := range r.services {
		work += r.services[i].served
		wasted += r.services[i].wasted
	}
	if work > 0 {
		s.Wasted = wasted / work
	}
	if r.total.total > 0 {
		s.P50, s.P99 = r.total.quantile(0.5)*1e3, r.total.quantile(0.99)*1e3
		s.Mean = r.sum / r.total.total * 1e3
	}
	s.BudgetRefused = r.reasons[forbear.ReasonBudget]
	s.BreakerRefused = r.reasons[forbear.ReasonBreakerOpen]
	for _, n := range r.puts {
		s.Postponed += n
	}
	r.multipliers(s)
}

// multipliers finds the peak over spans of a second, where noise is small, and
// the end's.
func (r *recorder) multipliers(s *Summary) {
	if len(r.bins) == 0 {
		return
	}
	span := max(1, int(int64(time.Second)/r.bin))
	var calls, attempts float64
	for i := range r.bins {
		calls += r.bins[i].calls
		attempts += r.bins[i].attempts()
		if i >= span {
			calls -= r.bins[i-span].calls
			attempts -= r.bins[i-span].attempts()
		}
		if calls > 0.5 && i >= span-1 {
			s.PeakMultiplier = max(s.PeakMultiplier, attempts/calls)
		}
	}
	s.PeakMultiplier = max(s.PeakMultiplier, s.Multiplier)
	var end tally
	for _, b := range r.bins[len(r.bins)-max(1, len(r.bins)/10):] {
		end.calls += b.calls
		end.turned += b.turned
		end.retry += b.retry
		end.good += b.good
	}
	if end.calls > 0 {
		s.FinalMultiplier = end.attempts() / end.calls
		s.FinalGoodput = end.good / end.calls
	}
}

// P50Float returns P50 as plain numbers, NaN where no call ended well.
func (s *Series) P50Float() []float64 { return plain(s.P50) }

// P99Float returns P99 in the same way.
func (s *Series) P99Float() []float64 { return plain(s.P99) }
