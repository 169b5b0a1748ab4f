// Package breaker stops calls to a dependency that keeps failing
// (INTG-STD-033), and bounds the calls that are under way at once.
//
// A [Breaker] counts how attempts end. It opens when they show, beyond chance,
// that too many fail or are slow; it lets nothing through for a while, then a few
// probes, and closes when all of them succeed. A [Bulkhead] refuses the call that
// would be one too many.
//
//   - breaker.go: what is asked and what is recorded.
//   - opening.go, probe.go, force.go: how it opens and for how long, its probes, and what
//     an operator does by hand.
//   - verdict.go: when a rate is too high, given that it was only counted.
//   - patience.go: trouble that passes by itself, and what is remembered of it.
//   - window.go: the latest attempts, by number and by time.
//
// All of it takes the time as an argument and is safe for concurrent use. The
// package knows nothing of policies, calls or protocols; a forbear.Retryer makes
// its own breaker and bulkhead from its policy.
package breaker
