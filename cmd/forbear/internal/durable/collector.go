package durable

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// scrapeTimeout bounds what a scrape asks the database. It is below Prometheus's
// default of 10 s, so that a slow database costs some series and not the whole
// scrape.
const scrapeTimeout = 2 * time.Second

// countUnreadable bounds what one of them counts.
const countUnreadable = 100_000

// The metrics of delivery that are not those of any call: what came in, what waits,
// and what the dispatcher cannot serve. Names and labels are an interface to users'
// dashboards and alerts. No label takes values from messages, which would have no
// bound.
var (
	accepted  = prometheus.NewDesc("webhook_messages_accepted_total", "Messages accepted by this process.", nil, nil)
	delivered = prometheus.NewDesc("webhook_deliveries_total", "Deliveries that succeeded.", nil, nil)
	failed    = prometheus.NewDesc("webhook_attempts_failed_total", "Attempts that failed.", nil, nil)
	postponed = prometheus.NewDesc("webhook_postponed_total", "Attempts that were postponed before they were sent.", nil, nil)
	oldest    = prometheus.NewDesc("webhook_oldest_due_seconds", "Wait of the oldest due delivery to an enabled endpoint.", nil, nil)
	outbox    = prometheus.NewDesc("webhook_outbox_oldest_seconds", "Wait of the first row of the outbox; 0 without rows.", nil, nil)
	unread    = prometheus.NewDesc("webhook_deliveries_unreadable", "Due deliveries that wait because processes lack their encryption key; at most 100000.", nil, nil)
	outdated  = prometheus.NewDesc("webhook_endpoints_unreadable", "Endpoints whose stored configuration this process cannot read.", nil, nil)
	endpoints = prometheus.NewDesc("webhook_endpoints", "Endpoints by state.", []string{"state"}, nil)
	held      = prometheus.NewDesc("webhook_endpoints_held", "Endpoints that this process sends nothing to because a secret or token is missing.", nil, nil)
	breakers  = prometheus.NewDesc("webhook_endpoints_breaker", "Enabled endpoints by state of their circuit breakers in this process.", []string{"state"}, nil)
	letters   = prometheus.NewDesc("dlq_messages", "Dead letters in the store by state.", []string{"queue", "reason", "state"}, nil)
	refusedBy = prometheus.NewDesc("delivery_api_refused_total", "Refused calls of the delivery API: without a valid token (unauthorized), or beyond its scope (forbidden).", []string{"reason"}, nil)
	healthy   = prometheus.NewDesc("alert_notifier_healthy", "Whether the notifier accepted the latest alert and alerts can be read: 1 or 0.", []string{"notifier"}, nil)
	working   = prometheus.NewDesc("webhook_part_healthy", "Whether a background task (claims, outcomes, outbox) works: 1, or 0 when it fails or hangs.", []string{"part"}, nil)
)

// Describe implements [prometheus.Collector]. The list must hold every metric of
// Collect: a registry refuses what was not described.
func (s *Service) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{accepted, delivered, failed, postponed, oldest, outbox, unread, outdated, endpoints, held, breakers, letters, refusedBy, healthy, working} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]: the counts of this process, and
// what the store holds. What retries and dead letters are counted as is
// promretry's business, as for all other calls. A store that does not respond
// has its part left out. It is safe for concurrent use. The counters start at 0 with
// each process, as Prometheus expects.
func (s *Service) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, k prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, k, v, labels...)
	}
	st := s.Dispatcher.Stats()
	send(accepted, prometheus.CounterValue, float64(st.Accepted))
	send(delivered, prometheus.CounterValue, float64(st.Delivered))
	send(failed, prometheus.CounterValue, float64(st.Failed))
	send(postponed, prometheus.CounterValue, float64(st.Postponed))
	send(held, prometheus.GaugeValue, float64(len(s.Dispatcher.Held())))
	send(outdated, prometheus.GaugeValue, float64(len(s.Dispatcher.Unreadable())))
	send(refusedBy, prometheus.CounterValue, float64(s.refusals.unauthorized.Load()), "unauthorized")
	send(refusedBy, prometheus.CounterValue, float64(s.refusals.forbidden.Load()), "forbidden")
	for state, n := range s.Dispatcher.Breakers() {
		send(breakers, prometheus.GaugeValue, float64(n), state.String())
	}
	for _, h := range s.Alerter.Health() {
		send(healthy, prometheus.GaugeValue, number(h.Healthy), h.Name)
	}
	for _, h := range s.parts() {
		send(working, prometheus.GaugeValue, number(h.Healthy), h.Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if list, err := s.DB.DeadLetters().Stats(ctx); err == nil {
		for _, l := range list {
			send(letters, prometheus.GaugeValue, float64(l.Count), l.Queue, l.Reason, string(l.State))
		}
		if len(list) == 0 { // zero is a figure, and a missing series is not
			send(letters, prometheus.GaugeValue, 0, webhook.Queue, "exhausted", string(deadletter.Dead))
		}
	}
	if n, err := s.DB.Webhooks().Unreadable(ctx, countUnreadable); err == nil {
		send(unread, prometheus.GaugeValue, float64(n))
	}
	if age, err := s.DB.Webhooks().OutboxAge(ctx); err == nil {
		send(outbox, prometheus.GaugeValue, age.Seconds())
	}
	all, err := s.DB.Webhooks().EndpointStates(ctx)
	if err != nil {
		return
	}
	// Both states are always there: a gauge that vanishes at zero breaks alerts.
	states := map[webhook.EndpointState]int{webhook.Enabled: 0, webhook.Disabled: 0}
	for _, state := range all {
		states[state]++
	}
	for state, n := range states {
		send(endpoints, prometheus.GaugeValue, float64(n), string(state))
	}
	if heads, err := s.DB.Webhooks().NextDues(ctx); err == nil {
		late := time.Duration(0)
		for _, h := range heads {
			if all[h.Endpoint] == webhook.Enabled {
				late = max(late, -h.In)
			}
		}
		send(oldest, prometheus.GaugeValue, late.Seconds())
	}
}

// number is a truth as a gauge. Gauges have no truth values: 1 is true, 0 is false.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
