// Package storm simulates retry storms: fleets of clients, the services that
// they call, and the faults between them, with forbear's own decisions, budgets
// and breakers running against simulated time.
//
// A [Scenario] is plain data. [Run] picks one of two engines for it:
//
//   - the exact engine treats every request as itself: Poisson or closed-loop
//     arrivals, a FIFO queue, timeouts, retries, layers. Its cost grows with the
//     number of requests;
//   - the cohort engine moves masses of requests in time steps. Its cost does
//     not depend on the rate, so a fleet of 100 million requests a second is as
//     quick as one of a hundred. It is right for large fleets, and says on the
//     [Result] where it is not.
//
// Both ask (*forbear.Retryer).Next what follows each failure: nothing of a
// policy is modeled here. What forbear forbids (no backoff, fixed waits, equal
// jitter, no budget) exists only as a [Baseline], for comparison: it replaces
// the wait, or the budget, of a real decision.
//
// The same scenario and seed give the same bytes.
package storm
