// Package storm simulates retry storms: fleets of clients, the services that
// they call, and the faults between them, with forbear's own decisions, budgets
// and breakers running against simulated time.
//
// A [Scenario] is plain data, and its zero fields have defaults. [Named] lists those
// that come with the simulator; [Scenario.Validate] says everything that is wrong
// with another. [Run] simulates every request: Poisson or closed-loop arrivals, a FIFO
// queue, timeouts, retries, layers. The cost grows with the number of requests.
//
// A scenario that would take too long is run as a sample: one of so many requests, on
// as small a part of everything. So a fleet of 100 million requests a second takes as
// long as one of ten thousand, and its result says how much of it was run. What would
// need too much in spite of that is refused with a [TooLargeError].
//
// A [Result] says how the run ended ([Verdict]), in numbers ([Summary]) and over
// time ([Series]), and writes itself as text, CSV and SVG. Studies are many runs:
// [Compare] sets ways of retrying side by side, [RunSweep] varies the load and the
// length of the fault, [RunCurve] the share of attempts that fails, [LeastTrigger]
// looks for the shortest fault after which the trouble stays.
//
// The engine asks the forbear.Retryer what follows each failure: nothing of a policy is
// modeled here. What forbear forbids (no backoff, fixed waits, equal
// jitter, no budget) exists only as a [Baseline], for comparison: it replaces
// the wait, or the budget, of a real decision.
//
// The same scenario and seed give the same bytes. All functions may be called from
// several goroutines at once; a Scenario that is being run must not be changed.
//
// The package is the face. A scenario is compiled (compile.go) into the model that
// the engine reads (internal/model), the engine (internal/engine) fills a record, and the
// face makes a result of that (summary.go, verdict.go, without_breakers.go). Pictures and
// tables are drawn by internal/report; internal/parallel spreads the runs of a study over the processors.
// Imports point downwards: the engine knows nothing of the scenario or of a report.
//
// Experimental: what this package exports may change in any version.
package storm
