package metric

import (
	"maps"
	"slices"
	"sync"
)

// Stalled is what of a consumer of events does not move: see package consume's type of
// that name.
type Stalled struct{ Sources, Handlers int }

// StalledGauge is a metric that is read off consumers. Its labels are the service and
// the consumer group.
type StalledGauge struct {
	Metric
	Read func(Stalled) float64
}

// StalledGauges are in the order of their names.
var StalledGauges = []StalledGauge{
	{
		stalledGauge("consume_stalled_handlers", "Event handlers that continue after their context ended and no longer count as concurrent."),
		func(s Stalled) float64 { return float64(s.Handlers) },
	},
	{
		stalledGauge("consume_stalled_sources", "Sources (partitions) that are paused because events that wait for retries occupy all slots."),
		func(s Stalled) float64 { return float64(s.Sources) },
	},
}

func stalledGauge(name, help string) Metric {
	return Metric{Name: name, Whole: true, Help: help, Kind: KindGauge, Labels: []string{labelService, labelGroup}}
}

// consumers are those that are asked, by the label of their group.
type consumers struct {
	mu   sync.Mutex
	read map[string][]func() Stalled
}

// WatchConsumer has a consumer asked. Those of one group are added up.
func (r *Recorder) WatchConsumer(group string, read func() Stalled) {
	name := r.labels.Bounded(labelGroup, group)
	r.consumers.mu.Lock()
	defer r.consumers.mu.Unlock()
	if r.consumers.read == nil {
		r.consumers.read = map[string][]func() Stalled{}
	}
	r.consumers.read[name] = append(slices.Clip(r.consumers.read[name]), read)
}

// Stalled returns what does not move, by the label of the group.
func (r *Recorder) Stalled() map[string]Stalled {
	r.consumers.mu.Lock()
	all := maps.Clone(r.consumers.read)
	r.consumers.mu.Unlock()
	sums := map[string]Stalled{}
	for group, list := range all {
		sum := Stalled{}
		for _, read := range list {
			s := read()
			sum.Sources += s.Sources
			sum.Handlers += s.Handlers
		}
		sums[group] = sum
	}
	return sums
}
