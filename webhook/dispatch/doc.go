// Package dispatch delivers messages to HTTP endpoints, durably: a message that
// was accepted is delivered at least once, or becomes a dead letter with an
// alert. It is never dropped, and the number of its attempts survives restarts.
//
// A [Dispatcher] takes due deliveries from a [webhook.Store] under a lease, sends them,
// and writes back what became of them. What follows a failed attempt is decided
// by the endpoint's [forbear.Retryer], as everywhere in forbear, from the state
// that is persisted with the delivery. A spent budget or an open breaker
// postpones the decision and consumes no attempt.
//
// Each endpoint is a lane of its own, with its concurrency, its rate and its
// breaker: one that hangs or fails delays no other.
//
// Receivers see the same webhook-id in every attempt, which is what they
// recognise duplicates by. Attempts are signed as Standard Webhooks says.
package dispatch
