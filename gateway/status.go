package gateway

import (
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// Status is what the admin endpoint shows. Its counts only grow: two
// readings give the rates.
type Status struct {
	Service      string             `json:"service"`
	At           time.Time          `json:"at"`
	Incoming     int64              `json:"incoming_requests"`
	Total        int                `json:"total"` // of dependencies, of which a page shows some
	Dependencies []DependencyStatus `json:"dependencies"`
}

// DependencyStatus is the part of one dependency.
type DependencyStatus struct {
	Dependency  string           `json:"dependency"`
	Initial     int64            `json:"initial_requests"`
	Retries     int64            `json:"retries"`
	Exhausted   int64            `json:"exhausted"`
	Recovered   map[string]int64 `json:"success_after_retry"` // by error_type
	Failed      map[string]int64 `json:"failed"`              // by error_type
	Suppressed  map[string]int64 `json:"suppressed"`          // by reason
	CertErrors  int64            `json:"certificate_errors"`
	Layered     int64            `json:"layered_sends"`
	Budget      BudgetStatus     `json:"budget"`
	Breaker     *BreakerStatus   `json:"breaker,omitempty"`
	Health      *HealthStatus    `json:"health,omitempty"`
	Concurrency *BulkheadStatus  `json:"bulkhead,omitempty"`
	// Pace is there while the dependency limits its callers.
	Pace *PaceStatus `json:"pace,omitempty"`
	// Earned is how many retries beyond the budget's share durable work has earned.
	Earned int `json:"earned_retries,omitempty"`
	// Delivery is there for endpoints of webhooks.
	Delivery *DeliveryStatus `json:"delivery,omitempty"`
	// Endpoints are the addresses of a dependency that may have several.
	Endpoints []upstream.EndpointStatus `json:"endpoints,omitempty"`
	Trouble   Trouble                   `json:"trouble"`
	// Latency is nil without an attempt in the last minutes.
	Latency *LatencyStatus `json:"latency,omitempty"`
	// Hour is there in a page of at most [MaxPage] dependencies, and nil for one that
	// had nothing to do for an hour.
	Hour *Hour `json:"hour,omitempty"`
}

// Trouble is what is wrong with a dependency. Pages list the highest rank first.
type Trouble struct {
	Rank int    `json:"rank"` // 0 when all is well
	Why  string `json:"why"`  // in a few words, "" when all is well
}

// LatencyStatus is how long the attempts of the last 5 to 10 minutes took, good and bad,
// within an eighth.
type LatencyStatus struct {
	P50 Duration `json:"p50"`
	P99 Duration `json:"p99"`
}

// Hour is what a dependency did in the last hour, a value for each minute. The last one is
// the minute that From leads up to in 59 steps, and is not over.
type Hour struct {
	From    time.Time `json:"from"`
	Step    Duration  `json:"step"`
	Calls   []uint32  `json:"calls"` // first attempts
	Retries []uint32  `json:"retries"`
	Failed  []uint32  `json:"failed"` // calls that failed in the end
	Saved   []uint32  `json:"saved"`  // calls that a retry has saved
}

// Duration is written as the delivery API writes one: "1.5s".
type Duration time.Duration

// String returns the text of d.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// DeliveryStatus is what holds up the deliveries to an endpoint of webhooks.
type DeliveryStatus struct {
	// Hold is why nothing but single messages are sent, beside the breaker:
	// "credential", "unresolved", "rejecting", "suspended", "unreadable", "disabled", or "".
	// Held says more.
	Hold string `json:"hold,omitempty"`
	Held string `json:"held,omitempty"`
	// NextProbe is when the next of them is sent, or a breaker's probe, at the
	// earliest; zero when there is no wait.
	NextProbe time.Time `json:"next_probe,omitzero"`
}

func (d *DeliveryStatus) isDisabled() bool { return d != nil && d.Hold == "disabled" }

// BudgetStatus is the reading of a retry budget.
type BudgetStatus struct {
	Used    float64 `json:"used"`
	Allowed float64 `json:"allowed"`
	// Floor is how many retries a window of that length allows a quiet client. Both are
	// the policy's; zero for a dependency that no Retryer serves.
	Floor  int      `json:"floor"`
	Window Duration `json:"window"`
}

// BreakerStatus is where a circuit breaker stands.
type BreakerStatus struct {
	State       string  `json:"state"`
	Forced      bool    `json:"forced"`
	FailureRate float64 `json:"failure_rate"`
	// Cause is why it moved there, by the name of a [breaker.Cause]; ""
	// when it has not moved yet.
	Cause string `json:"cause,omitempty"`
	// Since is when it moved there; zero when it has not moved yet.
	Since time.Time `json:"since,omitzero"`
	// BudgetExhausted says that the retry budget has refused a retry within the
	// last ten seconds.
	BudgetExhausted bool `json:"budget_exhausted"`
	// NextProbe is from when on one that is open lets an attempt through; zero
	// when it is not open, or held open by hand.
	NextProbe time.Time `json:"next_probe,omitzero"`
}

// HealthStatus is what the health gates of a dependency say.
type HealthStatus struct {
	// Healthy says that retries go on.
	Healthy bool `json:"healthy"`
	// SuccessRate is the share of good attempts in the gate's window, 0 to 1; nil
	// where the policy sets no limit and an endpoint alone is asked.
	SuccessRate *float64 `json:"success_rate,omitempty"`
}

// BulkheadStatus is how many more calls a bulkhead lets in now, of how many.
type BulkheadStatus struct {
	Available int `json:"available"`
	Max       int `json:"max"`
}

// PaceStatus is how the calls to a dependency are paced that limits them.
type PaceStatus struct {
	// Rate is how many sends a second are let out; 0 while that is not known yet.
	Rate float64 `json:"rate"`
	// Waiting is how many calls wait for their turn.
	Waiting int `json:"waiting"`
	// Closed says that the dependency refuses everything, and is probed.
	Closed bool `json:"closed,omitempty"`
}
