// Package model is what the simulator's engine works on: a scenario made ready to
// run, the callers with their real Retryers, what the faults make of a service, and
// the record of a run.
//
// It knows nothing of files, words or reports: package storm compiles a scenario
// into a [Model] and makes a result of a [Record]. Its parts, in the order in which
// a run meets them:
//
//   - [Model], with its [Fleet], [Service] and [Edge];
//   - [Fault]: any kind of fault, and several together, as its effects on a service;
//   - [Plan] and [Caller]: a client's policy, and one process that runs it;
//   - [Record]: what happened, in bins, with a histogram of latencies.
//
// Time in a run is nanoseconds since its start. Rates are in requests a second,
// shares between 0 and 1.
package model
