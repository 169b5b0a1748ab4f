package storm

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// Scenario is one thing to simulate: who calls, what serves, what breaks.
// Zero fields have the defaults that [Scenario.WithDefaults] fills in. The doc tags say
// what each field means, here as in the schema; comments say why, or more.
type Scenario struct {
	Name        string     `json:"name,omitzero" doc:"short name, used in reports"`
	Description string     `json:"description,omitzero" doc:"what the scenario shows"`
	Duration    Duration   `json:"duration,omitzero" doc:"simulated time; default 60s"`
	Seed        uint64     `json:"seed,omitzero" doc:"random seed; default 1"`
	Engine      EngineKind `json:"engine,omitzero" doc:"auto or exact; default auto"`
	Bin         Duration   `json:"bin,omitzero" doc:"width of the results' bins; default a 600th of the duration, at most a 20th"`

	Fleets   []Fleet   `json:"fleets" doc:"who sends requests"`
	Services []Service `json:"services" doc:"services; the first is the default target"`
	Faults   []Fault   `json:"faults,omitzero" doc:"what goes wrong, and when"`
}

// EngineKind says how much of a scenario is run.
type EngineKind string

// What is run.
const (
	Auto  EngineKind = "auto"  // every request, or a sample where that takes too long
	Exact EngineKind = "exact" // every request
)

// Fleet is a population of clients that share a policy. Exactly one of Rate, Load,
// Users and Burst is set. Where one number is wanted, the greatest rate of a Load is the
// nominal one, that a service is built for.
type Fleet struct {
	Name      string   `json:"name,omitzero" doc:"name in reports"`
	Instances int      `json:"instances,omitzero" doc:"processes, each with its own budget and breaker; default 1"`
	Rate      float64  `json:"rate,omitzero" doc:"open loop: new requests per second of the whole fleet"`
	Load      []Step   `json:"load,omitzero" doc:"open loop, instead of rate: a rate in steps, the first at 0s; the last one stays"`
	Users     int      `json:"users,omitzero" doc:"closed loop: users that wait for a response before they send again"`
	Think     Duration `json:"think,omitzero" doc:"closed loop: mean think time; default 1s"`
	Burst     int      `json:"burst,omitzero" doc:"send this number of requests at once, and no others"`
	BurstAt   Duration `json:"burst_at,omitzero" doc:"when the burst is sent; default 0s"`
	Regular   bool     `json:"regular,omitzero" doc:"open loop: evenly spaced instead of Poisson"`
	// Spread matters where each instance has a breaker: by chance one opens later than
	// another. The calls of a burst take turns.
	Spread string `json:"spread,omitzero" doc:"how calls come to the instances: chance (default) or turns"`
	Calls  string `json:"calls,omitzero" doc:"service that is called; default the first"`

	Client Client `json:"client,omitzero" doc:"how the fleet calls and retries"`
}

// Step is a rate that holds from At until the next step.
type Step struct {
	At   Duration `json:"at" doc:"when the rate begins"`
	Rate float64  `json:"rate" doc:"new requests per second of the whole fleet"`
}

// Service serves requests: a FIFO queue before servers of a total capacity,
// then, if it has any, calls to other services.
type Service struct {
	Name        string  `json:"name" doc:"name, unique"`
	Capacity    float64 `json:"capacity,omitzero" doc:"requests per second of all servers together; 0 is unlimited"`
	Concurrency int     `json:"concurrency,omitzero" doc:"number of parallel servers; default capacity x time, or 1"`
	// Time, beside a Capacity, sets the number of servers (Little's law). Without Time a
	// request takes Concurrency / Capacity: with one server, next to nothing.
	Time          Duration `json:"time,omitzero" doc:"mean service time; default concurrency / capacity"`
	Law           string   `json:"law,omitzero" doc:"service time: exponential (default), fixed or lognormal"`
	CV            float64  `json:"cv,omitzero" doc:"coefficient of variation of the lognormal; default 1"`
	PerConcurrent Duration `json:"per_concurrent,omitzero" doc:"added to a service time for each request in the service (contention)"`
	// Quantiles take the place of Time, Law and CV. Between them, the logarithm of the time
	// is linear on the scale of the normal distribution, so that two make a lognormal. The
	// outer slopes go on below the first and above the last, up to 10 times its time. With a
	// Capacity, their mean sets the number of servers, which is rounded.
	Quantiles []Quantile `json:"quantiles,omitzero" doc:"measured service times, instead of time, law and cv: two or more quantiles"`
	// QueueSlowdown divides the capacity by 1 + QueueSlowdown x queue seconds:
	// a queue that costs memory costs speed.
	QueueSlowdown float64 `json:"queue_slowdown,omitzero" doc:"capacity is divided by 1 + this x queue in seconds"`
	// Queue bounds the waiting requests by time: at most Queue x Capacity of
	// them. 0 is unbounded; what does not fit is refused with 503 at once.
	Queue       Duration `json:"queue,omitzero" doc:"bound of the queue, in seconds of nominal capacity; 0 is unbounded"`
	QueueLength int      `json:"queue_length,omitzero" doc:"bound of the queue, in requests"`
	Shed        Duration `json:"shed,omitzero" doc:"load shedding: respond with 503 while the expected wait is longer"`
	// Replicas are equal: each has this part of the capacity, of the servers and of the
	// queue's bound, at least one server and one place. An attempt comes to one by chance.
	Replicas int `json:"replicas,omitzero" doc:"number of equal replicas; an attempt comes to one by chance; default 1"`
	// RetryAfter goes with every 503 of the queue's bound, of shedding and of
	// outages, as a Retry-After header would.
	RetryAfter Duration `json:"retry_after,omitzero" doc:"Retry-After that goes with 503 responses"`
	Limit      Limit    `json:"limit,omitzero" doc:"rate limit before the queue: what is above it gets a 429"`
	// Timeout is the server's own. A request that is being served occupies its server until
	// the end; one in the queue is thrown away with DropExpired only.
	Timeout Duration `json:"timeout,omitzero" doc:"so long after its arrival a request gets a 503, and the work on it goes on; 0 is none"`
	// DropExpired lets the service throw away requests whose client has given
	// up (deadline propagation) without working on them.
	DropExpired bool `json:"drop_expired,omitzero" doc:"drop queued requests whose client has given up"`

	Calls []Edge `json:"calls,omitzero" doc:"services called after this one's own work, in parallel; all must succeed"`
}

// Quantile is a time that the part Q of all requests takes at most.
type Quantile struct {
	Q    float64  `json:"q" doc:"part of the requests, above 0 and below 1"`
	Time Duration `json:"time" doc:"service time that this part takes at most"`
}

// Limit is a token bucket, which is full at the start.
type Limit struct {
	Rate       float64  `json:"rate,omitzero" doc:"requests per second; 0 is unlimited"`
	Burst      float64  `json:"burst,omitzero" doc:"requests that the bucket holds; default one second's worth, and at least 1"`
	RetryAfter Duration `json:"retry_after,omitzero" doc:"Retry-After that goes with 429 responses"`
}

// Edge is a call from one service to another.
type Edge struct {
	To        string `json:"to" doc:"service that is called"`
	FanOut    int    `json:"fan_out,omitzero" doc:"calls per request; default 1"`
	Instances int    `json:"instances,omitzero" doc:"processes of the caller, each with its own budget; default 1"`
	Client    Client `json:"client,omitzero" doc:"how the caller calls and retries"`
}

// FaultKind names what goes wrong.
type FaultKind string

// The faults.
const (
	Outage    FaultKind = "outage"     // every request (or Rate of them) gets a 503, or Status, at once
	Errors    FaultKind = "errors"     // Rate of the served requests fail, by Mode
	Brownout  FaultKind = "brownout"   // capacity x Factor
	SlowStart FaultKind = "slow_start" // capacity climbs from Factor back to 1
	Pause     FaultKind = "pause"      // no capacity at all (garbage collection); requests queue
	Spike     FaultKind = "spike"      // the fleets' load x Factor
	Partition FaultKind = "partition"  // requests of Share of the clients vanish
	Slow      FaultKind = "slow"       // Rate of the requests take Time
)

// ErrorMode says which requests an Errors fault hits.
type ErrorMode string

// The error modes. At 1,000 requests a second, Rate 0.5 and three retries they
// end at 1,875, 2,500 and about 3,140 requests a second.
const (
	Independent ErrorMode = "independent" // each attempt anew
	Sticky      ErrorMode = "sticky"      // the same calls, on every attempt
	LoadCoupled ErrorMode = "load"        // what exceeds (1 - Rate) of the nominal load
)

// Fault is something that goes wrong for a while. Of faults that do the same to single
// requests at one time the greatest Rate counts; what they do in different ways (a 404
// and a 503) adds up.
type Fault struct {
	Kind    FaultKind `json:"kind" doc:"outage, errors, brownout, slow_start, pause, spike, partition or slow"`
	Service string    `json:"service,omitzero" doc:"affected service; default the first; a spike affects the fleets"`
	At      Duration  `json:"at,omitzero" doc:"when it begins"`
	For     Duration  `json:"for" doc:"how long it lasts"`
	Rate    float64   `json:"rate,omitzero" doc:"outage, errors: share of requests that fail; slow: that are slow; default 1"`
	Mode    ErrorMode `json:"mode,omitzero" doc:"errors: independent (default), sticky or load"`
	// Status decides what a client does: after a 404 or a 501 it does not retry.
	Status     int      `json:"status,omitzero" doc:"outage, errors: status of the response, 400 to 599; default 503 and 500"`
	RetryAfter Duration `json:"retry_after,omitzero" doc:"outage, errors: Retry-After of the response; default, of a 503 in an outage: the service's"`
	Method     string   `json:"method,omitzero" doc:"outage, errors: only requests of this method; default all"`
	// Time is that at full capacity: other faults lengthen it as any service time.
	Time Duration `json:"time,omitzero" doc:"slow: what a slow request takes instead of its usual service time"`
	// Factor is for Brownout (default 0.5), SlowStart (0.1) and Spike (2).
	Factor float64 `json:"factor,omitzero" doc:"brownout, slow_start: share of capacity, default 0.5 and 0.1; spike: load factor, default 2"`
	Share  float64 `json:"share,omitzero" doc:"partition: share of client instances that are cut off, rounded up; of a single one, that of its requests; default 1"`
	// Replicas is for every fault of a service that has several: one of them is bad.
	Replicas int `json:"replicas,omitzero" doc:"only this number of the service's replicas are affected; default all"`
}

// Client is how a caller calls: a forbear policy in a scenario's words, or what
// forbear forbids, as a baseline. A word that is left out has the default of a policy
// file: what is switched off is written.
type Client struct {
	// Policy, when set, takes the place of the words from Kind to Budget, which must be
	// zero then. Breaker still switches its breaker on or off.
	Policy *forbear.Policy `json:"-"`
	// PolicyRef names a policy of a policy file; the reader of the scenario
	// resolves it into Policy.
	PolicyRef string `json:"policy,omitzero" doc:"a dependency's policy from a policy file: FILE or FILE#DEPENDENCY"`

	Kind    string   `json:"kind,omitzero" doc:"sync (default), grpc, event, webhook or batch"`
	Retries *int     `json:"retries,omitzero" doc:"retries; the kind's default; 0 for none"`
	Timeout Duration `json:"timeout,omitzero" doc:"per attempt; default 5s"`
	Total   Duration `json:"total,omitzero" doc:"limit of the whole call; the kind's default"`
	Base    Duration `json:"base,omitzero" doc:"backoff base; default 1s"`
	Cap     Duration `json:"cap,omitzero" doc:"backoff cap; default 30s"`
	Jitter  string   `json:"jitter,omitzero" doc:"full (default) or decorrelated"`
	Strict  bool     `json:"strict,omitzero" doc:"no floor of retries for quiet clients"`
	Budget  Budget   `json:"budget,omitzero" doc:"retry budget"`
	Breaker *bool    `json:"breaker,omitzero" doc:"the default circuit breaker; default true"`
	// Method decides what may be sent again: POST and PATCH only with an idempotency key
	// . A webhook is a POST with a key.
	Method   string   `json:"method,omitzero" doc:"GET (default), HEAD, PUT, DELETE, POST or PATCH"`
	Key      bool     `json:"key,omitzero" doc:"POST, PATCH: the calls carry an idempotency key"`
	RTT      Duration `json:"rtt,omitzero" doc:"network round trip; default none"`
	RTTLaw   string   `json:"rtt_law,omitzero" doc:"fixed (default) or exponential, each way"`
	Throttle Throttle `json:"throttle,omitzero" doc:"adaptive client-side throttling, after the SRE book"`

	// MaxConcurrent is the policy's: a call holds a place from its first attempt to its end,
	// waits included, and one that finds none fails at once. A call of a durable kind holds
	// a place for each attempt.
	MaxConcurrent int `json:"max_concurrent,omitzero" doc:"calls of each instance under way at once; more are refused; default no bound"`
	// Connections are as http.Transport.MaxConnsPerHost says: an attempt holds one until its
	// response or its timeout. One that times out in line is never sent.
	Connections int `json:"connections,omitzero" doc:"connections of each instance; an attempt waits for a free one within its timeout; default no bound"`

	// Baseline departs from what forbear allows.
	Baseline Baseline `json:"baseline,omitzero" doc:"settings that forbear forbids, for comparison"`

	// NewBudget, when set, makes the budget of each instance.
	NewBudget func() budget.Budget `json:"-"`
}

// Budget is the retry budget of a client.
type Budget struct {
	Ratio      float64  `json:"ratio,omitzero" doc:"retries as a part of requests; default 0.2"`
	Window     Duration `json:"window,omitzero" doc:"rolling window; default 30s, or the cap when that is longer"`
	Of         string   `json:"of,omitzero" doc:"initial (default) or total"`
	MinRetries int      `json:"min_retries,omitzero" doc:"retries per window for quiet clients; default 3"`
}

// Throttle is adaptive throttling (SRE book, chapter 21): a client drops
// requests locally with probability (requests - K x accepts) / (requests + 1).
// It is not a part of forbear.
type Throttle struct {
	K      float64  `json:"k,omitzero" doc:"multiplier of accepts; 0 is off, 2 is usual"`
	Window Duration `json:"window,omitzero" doc:"rolling window; default 2m"`
}

// Baseline is what forbear forbids and others do. Each field replaces one part
// of a real decision; the rest of it stays real.
type Baseline struct {
	// Wait replaces the drawn wait: none, fixed (base), exponential (without
	// jitter) or equal (half the ceiling, and jitter on the other half).
	Wait     string `json:"wait,omitzero" doc:"none, fixed, exponential (no jitter) or equal"`
	NoBudget bool   `json:"no_budget,omitzero" doc:"no retry budget"`
	// Bucket is a token bucket that every request fills, instead of the
	// policy's budget.
	Bucket Bucket `json:"bucket,omitzero" doc:"token bucket that every request fills, instead of the budget"`
	// Oblivious makes a caller retry what a layer below has given up, and
	// retry inside another layer's retry.
	Oblivious bool `json:"oblivious,omitzero" doc:"retry what a layer below gave up on (retries at every layer)"`
	// Unchecked accepts counts, durations and ratios outside the standard's
	// ranges.
	Unchecked bool `json:"unchecked,omitzero" doc:"accept values outside the standard's ranges"`
}

// Bucket is a full bucket of Size retries to which every first attempt adds
// Deposit.
type Bucket struct {
	Deposit float64 `json:"deposit,omitzero" doc:"tokens that a request adds"`
	Size    float64 `json:"size,omitzero" doc:"tokens that the bucket holds; 0 for no bucket"`
}

// Duration is a time.Duration that reads and writes as text ("1.5s").
type Duration time.Duration

// D returns d as a plain time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// Brief returns d with about three digits: 1.67s and not 1.666666666s.
func (d Duration) Brief() string {
	unit := time.Duration(1)
	for time.Duration(d).Abs() >= 1000*unit && unit < time.Second {
		unit *= 10
	}
	return time.Duration(d).Round(unit).String()
}

// String returns d as time.Duration writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500ms or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}
