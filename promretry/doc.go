// Package promretry turns forbear's events into Prometheus metrics, which
// answer: are retries helping, are they dominating, who is forced to stop, is a
// layer below retrying behind our back?
//
//	m := promretry.New(promretry.WithService("checkout"))
//	prometheus.MustRegister(m)
//	payments, err := forbear.New("payments", policy, forbear.WithObserver(m.Observer()))
//	handler = m.Inbound(handler) // counts the requests that come in
//
// The metrics of R-10 carry their names; those of the circuit breaker and the
// bulkhead the names of INTG-STD-033. Three more tell the budget's part apart:
// circuit_breaker_opened_total counts openings by cause, of which the budget is
// one; circuit_breaker_budget_exhausted is 1 while the budget refuses retries;
// retry_paced_total counts the retries of durable work beyond its share. Of a
// dependency with a health gate, health_gate_healthy says whether retries go on, and
// health_success_rate what the gate has counted.
//
// [Metrics.Idempotency] and [Metrics.Consumer] count keyed requests and events by
// what became of them; [Metrics.Keys] has the records counted that wait for an
// operator.
//
// Labels are bounded: services, dependencies, queues, groups, error types, reasons and small
// numbers; at most 200 values each, of at most 64 plain characters, and "other"
// beyond, but for endpoints of webhooks: these are counted by the states of their
// breakers then, as "webhook:(open)". No URL, key or text of an error becomes a label.
//
// docs/alerts holds recording and alerting rules over these metrics, and
// docs/dashboards a Grafana dashboard.
package promretry
