// Package dispatch delivers messages to HTTP endpoints, durably: a message that
// was accepted is delivered at least once, or becomes a dead letter with an
// alert. It is never dropped, and the number of its attempts survives restarts.
//
// A [Dispatcher] claims due deliveries from a [store.Store] under a lease, sends
// them, and writes back what became of them. What follows a failed attempt is
// decided by the endpoint's [forbear.Retryer], as everywhere in forbear, from the
// state that is persisted with the delivery. A spent budget or an open breaker
// postpones the decision and consumes no attempt.
//
// Each endpoint has a receiver, with its concurrency, its rate and its breaker: one that
// hangs or fails does not delay the others.
//
// Receivers see the same webhook-id in every attempt, which is what they
// recognise duplicates by. Attempts are signed as Standard Webhooks says.
//
// # The way of a delivery
//
// The main loop (loop.go) asks the receivers (receiver.go) what they can take and claims it
// in one step of the store (claim.go). A receiver gives each delivery a slot (slots.go),
// where a job (job.go) looks at the lease, the endpoint and the 24 hours, makes the attempt
// (send.go), and asks the Retryer what follows. The receiver learns from the attempt, and
// the outcome goes back to the loop, which writes it with others (writeback.go).
//
// A receiver that may not send claims nothing, so that its deliveries stay in the store:
// while its endpoint is disabled (disable.go) or held (hold.go), and for moments while its
// budget is spent (earned.go).
//
// Experimental: what this package exports may change in any version.
package dispatch
