// Package otelretry turns forbear's events into OpenTelemetry metrics and spans.
//
//	o, err := otelretry.New()
//	payments, err := forbear.New("payments", policy,
//		forbear.WithObserver(o.Observer()), forbear.WithCorrelation(otelretry.TraceID))
//	client := &http.Client{Transport: otelretry.NewCallTransport(httpretry.NewTransport(
//		otelretry.NewTransport(http.DefaultTransport), payments))}
//
// The metrics bear the names that promretry has, so that dashboards and alerts
// fit both. A call is a span, by [NewCallTransport], and each attempt over HTTP a client
// span below it, by [NewTransport] and the semantic conventions: a retry carries
// http.request.resend_count. One transport goes above httpretry's and the other below.
// For operations that are not HTTP there is [Do], or [Traced] for the attempts alone.
// The wait before a retry and the end of a failed call are events of the span around
// the attempts.
//
// A trace goes on where no connection leads: [Carry] hands it to a message that is
// submitted, which takes it through the outbox to the receiver, and [Handled] continues
// the one of an event that package consume handles, whatever broker it came through.
//
// No query string, credential, header, body or text of an error becomes part of
// a span or a label.
package otelretry
