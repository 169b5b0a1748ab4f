// Package otelretry turns forbear's events into OpenTelemetry metrics and spans.
//
//	o, err := otelretry.New()
//	payments, err := forbear.New("payments", policy,
//		forbear.WithObserver(o.Observer()), forbear.WithCorrelation(otelretry.TraceID))
//	client := &http.Client{Transport: httpretry.NewTransport(
//		otelretry.NewTransport(http.DefaultTransport), payments)}
//
// The metrics bear the names that promretry has, so that dashboards and alerts
// fit both. Each attempt over HTTP is a client span of its own, by the semantic
// conventions: a retry carries http.request.resend_count. The transport goes
// below httpretry's, so that it sees attempts rather than calls. For operations
// that are not HTTP there is [Traced]. The wait before a retry and the end of a
// failed call are events of the span around the call.
//
// No query string, credential, header, body or text of an error becomes part of
// a span or a label.
package otelretry
