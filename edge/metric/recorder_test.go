package metric_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/reason"
)

// memory is a sink that keeps each series as name{labels}.
type memory struct {
	mu     sync.Mutex
	series map[string]float64
}

type cell struct {
	m    *memory
	name string
}

func (c cell) Record(_ context.Context, v float64) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.series[c.name] += v
}

func (m *memory) Series(id metric.ID, labels ...string) metric.Series {
	row := metric.Table[id]
	if len(labels) != len(row.Labels) {
		panic(fmt.Sprintf("%s{%s} has the values %q", row.Name, strings.Join(row.Labels, ","), labels))
	}
	c := cell{m, row.Name + "{" + strings.Join(labels, ",") + "}"}
	c.Record(context.Background(), 0)
	return c
}

// matching returns the series of a metric, sorted.
func (m *memory) matching(name string) (found []string) {
	for s := range m.series {
		if strings.HasPrefix(s, name+"{") {
			found = append(found, s)
		}
	}
	slices.Sort(found)
	return found
}

func newRecorder() (*metric.Recorder, *memory) {
	m := &memory{series: map[string]float64{}}
	return metric.NewRecorder(m, "checkout"), m
}

func attach(t *testing.T, r *metric.Recorder, name string, p forbear.Policy) *forbear.Retryer {
	t.Helper()
	made, err := forbear.New(name, p, forbear.WithObserver(r.Observer()), forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Each row can be registered: a name of its own, a help text, buckets where it
// is a histogram and labels that no other has twice.
func TestTableIsWhole(t *testing.T) {
	rows := slices.Clone(metric.Table[:])
	for _, g := range metric.Gauges {
		rows = append(rows, g.Metric)
		if g.Read == nil {
			t.Errorf("%s cannot be read", g.Name)
		}
	}
	seen := map[string]bool{}
	for i, m := range rows {
		if m.Name == "" || m.Help == "" || seen[m.Name] {
			t.Errorf("row %d: name %q (seen: %v), help %q", i, m.Name, seen[m.Name], m.Help)
		}
		seen[m.Name] = true
		if (m.Kind == metric.KindHistogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s: kind %d with the buckets %v", m.Name, m.Kind, m.Buckets)
		}
		if sorted := slices.Sorted(slices.Values(m.Labels)); len(slices.Compact(sorted)) != len(m.Labels) {
			t.Errorf("%s: labels %q", m.Name, m.Labels)
		}
	}
}

// What an alert takes the increase of begins at zero, but only where the policy
// lets it move.
func TestSeriesBeginAtZero(t *testing.T) {
	noBreaker := breaker.Policy{Disabled: true}
	for name, tt := range map[string]struct {
		policy                                       forbear.Policy
		retries, openings, rejections, paced, queues int
	}{
		"a call":         {forbear.Policy{Breaker: noBreaker}, 3, 0, 0, 0, 0},
		"a breaker":      {forbear.Policy{}, 3, 5, 0, 0, 0},
		"a bulkhead":     {forbear.Policy{Breaker: noBreaker, MaxConcurrent: 1}, 3, 0, 1, 0, 0},
		"a batch":        {forbear.Policy{Breaker: noBreaker, Kind: forbear.Batch}, 0, 0, 0, 1, 0},
		"durable events": {forbear.Policy{Breaker: noBreaker, Kind: forbear.Event}, 0, 0, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := newRecorder()
			p := attach(t, r, "payments", tt.policy).Policy()
			if tt.retries == 0 {
				tt.retries = p.Retries()
			}
			for metric, want := range map[string]int{
				"retry_initial_requests_total": 1, "retry_exhausted_total": 1, "circuit_breaker_calls_total": 5,
				"retry_attempts_total": tt.retries, "circuit_breaker_opened_total": tt.openings,
				"bulkhead_rejections_total": tt.rejections, "retry_paced_total": tt.paced, "dlq_messages_total": tt.queues,
				"retry_incoming_requests_total": 1, "retry_failed_calls_total": 0,
			} {
				if got := m.matching(metric); len(got) != want {
					t.Errorf("%s: got %d series %q, want %d", metric, len(got), got, want)
				}
			}
			for s, v := range m.series {
				if v != 0 {
					t.Errorf("%s begins at %v", s, v)
				}
			}
		})
	}
}

// The time ran out before an attempt, or during one: only the first was not begun.
func TestTimeBudget(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop forbear.Stopped
		want float64
	}{
		{"before the first", forbear.Stopped{Reason: reason.Deadline, Failure: forbear.Failure{Type: errtype.CallerDeadline}}, 1},
		{"before a retry", forbear.Stopped{Reason: reason.Deadline, Attempts: 1}, 1},
		{"in an attempt", forbear.Stopped{Reason: reason.Deadline, Attempts: 1, Failure: forbear.Failure{Type: errtype.CallerDeadline}}, 0},
		{"a hint beyond it", forbear.Stopped{Reason: reason.HintTooLong, Attempts: 1}, 1},
		{"enough time", forbear.Stopped{Reason: reason.Exhausted, Attempts: 1}, 0},
	} {
		r, m := newRecorder()
		tt.stop.Dependency = "payments"
		r.Observer().Stopped(t.Context(), tt.stop)
		if got := m.series["timeout_budget_exhausted_total{checkout,payments}"]; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Names of dependencies are bounded, unless the sink wants them all.
func TestDependenciesAreBounded(t *testing.T) {
	for _, all := range []bool{false, true} {
		r, m := newRecorder()
		r.AllDependencies = all
		for i := range label.MaxValues + 50 {
			attach(t, r, fmt.Sprintf("dependency-%d", i), forbear.Policy{})
		}
		attach(t, r, "pay ments", forbear.Policy{})
		want := label.MaxValues + 1 // "other"
		if all {
			want = label.MaxValues + 51
		}
		if got := len(m.matching("retry_initial_requests_total")); got != want || len(r.Retryers()) != want {
			t.Errorf("all %v: got %d series of %d Retryers, want %d", all, got, len(r.Retryers()), want)
		}
	}
}

// Endpoints of webhooks beyond the bound are counted by the states of their breakers, not
// with other dependencies, and a Retryer that is used no more is forgotten.
func TestEndpointsBeyondTheBound(t *testing.T) {
	r, m := newRecorder()
	for i := range label.MaxValues {
		attach(t, r, fmt.Sprintf("webhook:e%d", i), forbear.Policy{Kind: forbear.Webhook})
	}
	one := attach(t, r, "webhook:one", forbear.Policy{Kind: forbear.Webhook})
	two := attach(t, r, "webhook:t(w)o", forbear.Policy{Kind: forbear.Webhook})
	attach(t, r, "payments", forbear.Policy{})
	send := func(retryer *forbear.Retryer) {
		r.Observer().AttemptEnded(t.Context(), forbear.AttemptEnded{Info: forbear.Info{Dependency: retryer.Dependency(), Attempt: 1}})
	}
	send(one)
	send(two)
	one.Breaker().Force(breaker.Open, "ann", time.Now())
	for range 3 {
		send(one)
	}
	for name, want := range map[string]float64{"webhook:(closed)": 2, "webhook:(open)": 3, "webhook:(half-open)": 0, "other": 0} {
		if got, ok := m.series["retry_initial_requests_total{checkout,"+name+"}"]; !ok || got != want {
			t.Errorf("%s: %v requests, want %v", name, got, want)
		}
	}
	if got := len(r.Retryers()); got != label.MaxValues+1 {
		t.Errorf("gauges of %d Retryers", got)
	}
	// Another takes the place of the one before, which goes.
	for range 3 {
		one = attach(t, r, "webhook:one", forbear.Policy{Kind: forbear.Webhook})
		runtime.GC()
	}
	one.Breaker().Force(breaker.Open, "ann", time.Now())
	send(one)
	if got := m.series["retry_initial_requests_total{checkout,webhook:(open)}"]; got != 4 {
		t.Errorf("%v requests with the breaker open, want 4", got)
	}
}
