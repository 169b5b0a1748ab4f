// Package storm simulates retry storms: fleets of clients, the services that
// they call, and the faults between them, with forbear's own decisions, budgets
// and breakers running against simulated time.
//
// A [Scenario] is plain data, and its zero fields have defaults. [Named] lists those
// that come with the simulator; [Scenario.Validate] says everything that is wrong
// with another. [Run] picks one of two engines for it:
//
//   - the exact engine treats every request as itself: Poisson or closed-loop
//     arrivals, a FIFO queue, timeouts, retries, layers. Its cost grows with the
//     number of requests;
//   - the cohort engine moves masses of requests in time steps. Its cost does
//     not depend on the rate, so a fleet of 100 million requests a second is as
//     quick as one of a hundred. It is right for large fleets, and says on the
//     [Result] where it is not.
//
// A stack of layers that is too large for the exact engine, and does not fit the
// other one, is run as a sample: one of so many requests, on as small a part of
// everything. What would need too much in spite of that is refused with a
// [TooLargeError].
//
// A [Result] says how the run ended ([Verdict]), in numbers ([Summary]) and over
// time ([Series]), and writes itself as text, CSV and SVG. Studies are many runs:
// [Compare] sets ways of retrying side by side, [RunSweep] varies the load and the
// length of the fault, [RunCurve] the share of attempts that fails, [LeastTrigger]
// looks for the shortest fault after which the trouble stays.
//
// Both engines ask (*forbear.Retryer).Next what follows each failure: nothing of a
// policy is modeled here. What forbear forbids (no backoff, fixed waits, equal
// jitter, no budget) exists only as a [Baseline], for comparison: it replaces
// the wait, or the budget, of a real decision.
//
// The same scenario and seed give the same bytes. All functions may be called from
// several goroutines at once; a Scenario that is being run must not be changed.
//
// The package is the face. A scenario is compiled (compile.go) into the model that
// the engines read (internal/model), an engine (internal/exact, internal/cohort)
// fills a record, and the face makes a result of that (summary.go, verdict.go).
// Pictures and tables are drawn by internal/report; internal/parallel spreads the runs
// of a study over the processors. Arrows point downwards: neither
// engine knows of the other, of the scenario, or of a report.
//
// Experimental: what this package exports may change in any version.
package storm
