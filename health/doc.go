// Package health stops the retries to a dependency that is unhealthy, and leaves its
// first attempts alone, so that its recovery is seen.
//
// A [Gate] counts how the attempts of a window ended and says whether their rate
// of success is below a limit beyond chance. It is off unless a [Policy] sets the
// limit, and gentler than a circuit breaker: a breaker stops every call and probes;
// a gate takes away only what retries add to the load.
//
//   - policy.go: the figures, their defaults and their check.
//   - gate.go: the counting, and the question.
//
// Package health/probe asks an endpoint instead. Both serve as the gate of
// forbear.WithHealthGate; a forbear.Retryer makes its own Gate from its policy.
package health
