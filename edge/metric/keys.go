package metric

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Keyed returns what counts the requests with idempotency keys to a dependency:
// what became of one, how long its handler ran, and how long it waited for
// another's run.
func (r *Recorder) Keyed(dependency string) func(result string, took, waited time.Duration) {
	name := r.Dependency(dependency)
	get := func(id ID, more ...string) Series {
		return r.sink.Series(id, append([]string{r.service, name}, more...)...)
	}
	results := map[string]Series{}
	for _, result := range keyResults {
		results[result] = get(KeyRequests, result)
	}
	runs, waits, ctx := get(KeyRuns), get(KeyWaits), context.Background()
	return func(result string, took, waited time.Duration) {
		s := results[result]
		if s == nil {
			s = results["other"]
		}
		s.Record(ctx, 1)
		if took > 0 {
			runs.Record(ctx, took.Seconds())
		}
		if waited > 0 {
			waits.Record(ctx, waited.Seconds())
		}
	}
}

// keyResults are the values of the label result. All exist from the start, so that
// an alert sees the first of each.
var keyResults = [...]string{
	"executed", "deferred", "replayed", "in_progress", "mismatch", "invalid", "held", "not_replayable", "store_error", "outcome_lost",
	"fenced", "too_large", "stalled", "overloaded", "unauthenticated", "other",
}

// Consumed returns the counter of a consumer group's events by their outcome.
// The durations of its handlers are those of the attempts of its dependency.
func (r *Recorder) Consumed(group string) func(outcome string) {
	name := r.labels.Bounded(labelGroup, group)
	outcomes := map[string]Series{}
	for _, o := range eventOutcomes {
		outcomes[o] = r.sink.Series(Events, r.service, name, o)
	}
	return func(outcome string) {
		s := outcomes[outcome]
		if s == nil {
			s = outcomes["retry"]
		}
		s.Record(context.Background(), 1)
	}
}

// eventOutcomes are the values of the label outcome of [Events].
var eventOutcomes = [...]string{"done", "duplicate", "waiting", "retry", "postponed", "dead_lettered", "held", "store_error", "canceled"}

// Waiting is what waits in the stores of idempotency records, of one kind: see
// package idempotency's type of that name.
type Waiting struct {
	Held       int
	HeldFor    time.Duration
	Overdue    int
	OverdueFor time.Duration
}

// KeyGauge is a metric that is read off the stores of idempotency records. Its
// labels are the service and the kind: request or event.
type KeyGauge struct {
	Metric
	Read func(w Waiting) float64
}

// KeyGauges are in the order of their names.
var KeyGauges = []KeyGauge{
	{
		keyGauge("idempotency_held_keys", "", true, "Idempotency records with an unknown outcome, which an operator must resolve."),
		func(w Waiting) float64 { return float64(w.Held) },
	},
	{
		keyGauge("idempotency_held_oldest_seconds", "s", false, "Age of the oldest idempotency record with an unknown outcome; 0 without one."),
		func(w Waiting) float64 { return w.HeldFor.Seconds() },
	},
	{
		keyGauge("idempotency_overdue_keys", "", true, "Repeatable runs with an expired lease, which wait for the next attempt."),
		func(w Waiting) float64 { return float64(w.Overdue) },
	},
	{
		keyGauge("idempotency_overdue_oldest_seconds", "s", false, "Time since the oldest of these leases expired; 0 without one."),
		func(w Waiting) float64 { return w.OverdueFor.Seconds() },
	},
}

func keyGauge(name, unit string, whole bool, help string) Metric {
	return Metric{Name: name, Unit: unit, Whole: whole, Help: help, Kind: KindGauge, Labels: []string{labelService, "kind"}}
}

// The stores are asked this often at most, however often the metrics are read, and
// each may take so long.
const (
	keysEvery   = 15 * time.Second
	keysTimeout = 2 * time.Second
)

// keyStores are the stores whose records are counted, and the latest count. A
// store that does not respond leaves none: a figure that no one can check would
// look like a quiet day.
type keyStores struct {
	mu    sync.Mutex
	count []func(context.Context) (requests, events Waiting, err error)
	asked time.Time
	kinds map[string]Waiting // nil: not known
}

// CountKeys has a store counted. A service with several has the sum of them.
func (r *Recorder) CountKeys(count func(context.Context) (requests, events Waiting, err error)) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	r.keys.count = append(slices.Clip(r.keys.count), count)
	r.keys.asked = time.Time{}
}

// Keys returns what waits, by kind. It is empty without a store and while one does
// not respond.
func (r *Recorder) Keys(now time.Time) map[string]Waiting {
	k := &r.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.count) == 0 || !k.asked.IsZero() && now.Sub(k.asked) < keysEvery {
		return k.kinds
	}
	k.asked, k.kinds = now, nil
	ctx, cancel := context.WithTimeout(context.Background(), keysTimeout)
	defer cancel()
	var requests, events Waiting
	for _, count := range k.count {
		r, e, err := count(ctx)
		if err != nil {
			return nil
		}
		requests, events = requests.and(r), events.and(e)
	}
	k.kinds = map[string]Waiting{"request": requests, "event": events}
	return k.kinds
}

// and is what waits in two stores.
func (w Waiting) and(o Waiting) Waiting {
	return Waiting{w.Held + o.Held, max(w.HeldFor, o.HeldFor), w.Overdue + o.Overdue, max(w.OverdueFor, o.OverdueFor)}
}
