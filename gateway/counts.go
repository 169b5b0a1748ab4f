package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/reason"
)

// counts are the sink for those metrics that the admin page shows, and that forbear
// top reads. The zero value is ready.
type counts struct {
	incoming count

	mu     sync.Mutex // of the map and the list; the tallies in them have their own
	of     map[string]*tally
	sorted []*tally // by name, nil when one was added since
}

// count is a series that the page shows. It only grows.
type count struct{ atomic.Int64 }

// Record implements [metric.Series].
func (c *count) Record(_ context.Context, v float64) { c.Add(int64(v)) }

// tally is what the calls to one dependency have done. A call that succeeds at once moves
// initial and took, which take no lock. With all that a busy dependency keeps it is some
// 3 KB, 30 MB for 10,000 of them; moves and failed calls come on top.
type tally struct {
	name                                      string
	initial, retries, exhausted, certificates count
	// failed and saved are the calls of all error types. faults are those of failed for
	// which the dependency may be to blame: a refused request or an impatient caller is no trouble.
	// Durable work may not end for days: each failed attempt of it is one of faults.
	failed, saved, faults count
	took                  latency
	retryer               atomic.Pointer[forbear.Retryer] // the latest of that name, nil for one that is not served

	// No breaker may be asked under mu: its events come with its own lock held.
	mu     sync.Mutex
	by     map[countKey]*labelled
	past   past
	events events
	// streak is how many attempts of durable work have failed while good ones were as many
	// as goods.
	streak, goods int64
}

// good returns how many attempts had no fault.
func (t *tally) good() int64 { return t.initial.Load() + t.retries.Load() - t.faults.Load() }

// failedAgain counts a failed attempt of durable work that is not the last of its call.
func (t *tally) failedAgain() {
	t.faults.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if good := t.good(); good != t.goods {
		t.streak, t.goods = 0, good
	}
	t.streak++
}

// countKey names a count of a tally by the error_type or the reason. Failed calls that are
// faults are counted apart.
type countKey struct {
	metric metric.ID
	by     string
	fault  bool
}

// labelled is a count that is added to sums as well.
type labelled struct {
	count
	sums []*count
}

// Record implements [metric.Series].
func (l *labelled) Record(_ context.Context, v float64) {
	l.Add(int64(v))
	for _, sum := range l.sums {
		sum.Add(int64(v))
	}
}

// unseen is the series of a metric that the admin page does not show. It saves the
// recorder a question at each measurement.
type unseen struct{}

func (unseen) Record(context.Context, float64) {}

// Series implements [metric.Sink]. Labels beyond those of the page are summed
// up: failures of one type count together whatever the reason of their end.
func (c *counts) Series(id metric.ID, labels ...string) metric.Series {
	if id == metric.Incoming {
		return &c.incoming
	}
	if len(labels) < 2 {
		return unseen{}
	}
	t := c.tally(labels[1])
	switch id {
	case metric.Initial:
		return &t.initial
	case metric.Retries:
		return &t.retries
	case metric.Exhausted:
		return &t.exhausted
	case metric.Certificates:
		return &t.certificates
	case metric.Latency:
		return &t.took
	case metric.Recovered:
		return t.labelled(countKey{id, labels[2], false}, &t.saved)
	case metric.Suppressed:
		return t.labelled(countKey{id, labels[2], false})
	case metric.Failed:
		if why := labels[3]; why != reason.Terminal.String() && why != reason.Canceled.String() {
			return t.labelled(countKey{id, labels[2], true}, &t.failed, &t.faults)
		}
		return t.labelled(countKey{id, labels[2], false}, &t.failed)
	}
	return unseen{}
}

// tally returns the counts of a dependency, made when it is first seen.
func (c *counts) tally(name string) *tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.of[name]
	if t == nil {
		if c.of == nil {
			c.of = map[string]*tally{}
		}
		t = &tally{name: name}
		c.of[name], c.sorted = t, nil
	}
	return t
}

// find returns the counts of a dependency, or nil.
func (c *counts) find(name string) *tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[name]
}

// all returns the counts of all dependencies by their names. The list is not to be changed.
func (c *counts) all() []*tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sorted == nil {
		for _, t := range c.of {
			c.sorted = append(c.sorted, t)
		}
		slices.SortFunc(c.sorted, func(a, b *tally) int { return cmp.Compare(a.name, b.name) })
	}
	return c.sorted
}

func (t *tally) labelled(key countKey, sums ...*count) *labelled {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[countKey]*labelled{}
	}
	if t.by[key] == nil {
		t.by[key] = &labelled{sums: sums}
	}
	return t.by[key]
}

// fill copies the counts into d. Those of one dependency go on while they are read: they
// are each right, but not of one moment.
func (t *tally) fill(d *DependencyStatus) {
	*d = DependencyStatus{
		Dependency: t.name, Initial: t.initial.Load(), Retries: t.retries.Load(), Exhausted: t.exhausted.Load(), CertErrors: t.certificates.Load(),
		Recovered: map[string]int64{}, Failed: map[string]int64{}, Suppressed: map[string]int64{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, n := range t.by {
		switch key.metric {
		case metric.Recovered:
			d.Recovered[key.by] += n.Load()
		case metric.Failed:
			d.Failed[key.by] += n.Load()
		default:
			d.Suppressed[key.by] += n.Load()
		}
	}
	d.Latency = t.took.status()
}
