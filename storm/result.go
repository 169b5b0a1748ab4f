package storm

import (
	"time"

	"github.com/forbear-go/forbear/storm/internal/model"
	"github.com/forbear-go/forbear/storm/internal/report"
)

// Result is what a run came to. It holds nothing of the machine or the moment:
// the same scenario and seed give the same Result.
type Result struct {
	Scenario string   `json:"scenario"`
	Seed     uint64   `json:"seed"`
	Duration Duration `json:"duration"`
	Bin      Duration `json:"bin"`
	// Scale says that one of so many requests was run; 0 is all of them.
	Scale float64 `json:"scale,omitzero"`
	// Notes say what a reader must know of the run.
	Notes    []string        `json:"notes,omitempty"`
	Summary  Summary         `json:"summary"`
	Series   Series          `json:"series"`
	Services []ServiceResult `json:"services"`
	// Trigger is when the first fault begins and the last one ends.
	Trigger *[2]Duration `json:"trigger,omitempty"`
	// Faults are when each fault begins and ends.
	Faults [][2]Duration `json:"faults,omitempty"`
	// Stopped says that the run was broken off.
	Stopped bool `json:"stopped,omitzero"`

	// refusals are the attempts that breakers refused.
	refusals float64
	// begun are the calls that began in each bin, by how they ended.
	begun []model.Ends

	// Events is the number of events; of both runs, when there were two.
	Events int64 `json:"events"`
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
	P50             Latency `json:"p50_ms"`
	P99             Latency `json:"p99_ms"`
	Mean            Latency `json:"mean_ms"`
	MaxQueue        float64 `json:"max_queue_s"`
	// Wasted is the part of the services' work whose caller had given up.
	Wasted float64 `json:"wasted"`
	// Open are the calls that are under way at the end: Calls is Good + Failed + Open.
	Open float64 `json:"open"`
	// BudgetRefused, BreakerRefused and ConcurrencyRefused (max_concurrent) are the
	// failed calls that ended for that reason.
	BudgetRefused      float64 `json:"budget_refused"`
	BreakerRefused     float64 `json:"breaker_refused"`
	ConcurrencyRefused float64 `json:"concurrency_refused"`
	// Reasons are the failed calls by the reason that ended them, under the names that
	// package reason gives, or throttled: by the client's adaptive throttling.
	Reasons map[string]float64 `json:"failed_by_reason,omitempty"`
	// Postponed is how often calls of durable kinds were postponed: the budget was
	// spent, or the breaker open.
	Postponed float64 `json:"postponed"`
	// FaultCost is the part, 0 to 1, of the calls that begin while the fault lasts which
	// fails without any breaker; BreakerCost the part that ends well then, and does not
	// with the breakers: negative when they save calls. Both are 0 when breakers refused
	// next to nothing.
	FaultCost   float64 `json:"fault_cost"`
	BreakerCost float64 `json:"breaker_cost"`
	// Verdict is steady, recovered, self-inflicted, limited, metastable, overloaded
	// or undecided.
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
	// Limited: trouble without a fault, and most of it is what the clients' own
	// max_concurrent refuses. The service may be idle.
	Limited Verdict = "limited"
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
	P50        Latencies `json:"p50_ms"`
	P99        Latencies `json:"p99_ms"`
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

// Latency is in milliseconds: NaN, which JSON has as null, where no call ended well or
// a sample cannot say it.
type Latency float64

// MarshalJSON implements [json.Marshaler].
func (l Latency) MarshalJSON() ([]byte, error) {
	return report.AppendFinite(nil, float64(l)), nil
}

// Latencies are one [Latency] a bin.
type Latencies []float64

// MarshalJSON implements [json.Marshaler].
func (l Latencies) MarshalJSON() ([]byte, error) {
	return report.AppendArray(nil, l), nil
}

// attempts returns all that was sent by bin, first attempts and retries.
func (s *Series) attempts() []float64 {
	total := make([]float64, len(s.Fresh))
	for i := range total {
		total[i] = s.Fresh[i] + s.Retry[i]
	}
	return total
}

// faults returns Faults in plain durations.
func (r *Result) faults() (all [][2]time.Duration) {
	for _, f := range r.Faults {
		all = append(all, [2]time.Duration{f[0].D(), f[1].D()})
	}
	return all
}
