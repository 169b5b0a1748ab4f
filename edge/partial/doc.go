// Package partial holds the outcome of a policy: what callers get from a
// dependency that fails in part, or as a whole, with the default policy and with
// the same policy without its circuit breaker, in virtual time. Each rule of a
// policy may hold alone while all of them together turn a fifth of failures into
// an outage; here they are together.
//
// A [Load] of callers calls through a [Client], the edge on trial, to a
// [Dependency] whose responses depend on the time and on luck, and a [Result]
// counts; [Work] is for durable work. Equal seeds have equal luck. [StaysPartial], [Opens], [Passes],
// [Bursts] and [Flaps] are the goals, for the tests of each edge.
package partial
