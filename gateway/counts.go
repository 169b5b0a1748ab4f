package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear/edge/metric"
)

// counts are the sink for those metrics that the admin page shows, and that forbear
// top reads. Waits and latencies are not among them: a page that stores nothing
// has no use for a histogram. The zero value is ready.
type counts struct {
	incoming count
	mu       sync.Mutex // of the map; the counts in it need none
	of       map[countKey]*count
}

// countKey names a count. by is the error_type or the reason, where the page
// shows the metric by one.
type countKey struct {
	metric         metric.ID
	dependency, by string
}

// count is a series that the page shows. It only grows.
type count struct{ atomic.Int64 }

// Record implements [metric.Series].
func (c *count) Record(_ context.Context, v float64) { c.Add(int64(v)) }

// unseen is the series of a metric that the admin page does not show. It saves the
// recorder a question at each measurement.
type unseen struct{}

func (unseen) Record(context.Context, float64) {}

// Series implements [metric.Sink]. Labels beyond those of the page are summed
// up: failures of one type count together whatever the reason of their end.
func (c *counts) Series(id metric.ID, labels ...string) metric.Series {
	var by string
	switch id {
	case metric.Incoming:
		return &c.incoming
	case metric.Recovered, metric.Failed, metric.Suppressed:
		by = labels[2]
	case metric.Initial, metric.Retries, metric.Exhausted, metric.Certificates:
	default:
		return unseen{}
	}
	key := countKey{id, labels[1], by}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[countKey]*count{}
	}
	if c.of[key] == nil {
		c.of[key] = new(count)
	}
	return c.of[key]
}

// statuses returns what was counted, by dependency. The counts of one dependency
// go on while they are read: they are each right, but not of one moment.
func (c *counts) statuses() map[string]*DependencyStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*DependencyStatus{}
	for key, n := range c.of {
		d := found[key.dependency]
		if d == nil {
			d = uncounted(key.dependency)
			found[key.dependency] = d
		}
		switch key.metric {
		case metric.Initial:
			d.Initial = n.Load()
		case metric.Retries:
			d.Retries = n.Load()
		case metric.Exhausted:
			d.Exhausted = n.Load()
		case metric.Certificates:
			d.CertErrors = n.Load()
		case metric.Recovered:
			d.Recovered[key.by] = n.Load()
		case metric.Failed:
			d.Failed[key.by] = n.Load()
		case metric.Suppressed:
			d.Suppressed[key.by] = n.Load()
		}
	}
	return found
}

// uncounted is a dependency of which nothing is counted yet.
func uncounted(name string) *DependencyStatus {
	return &DependencyStatus{Dependency: name, Recovered: map[string]int64{}, Failed: map[string]int64{}, Suppressed: map[string]int64{}}
}
