// Package model is what the engines of the simulator have in common: a scenario
// made ready to run, the callers with their real Retryers, what the faults make
// of a service, and the record of a run.
//
// It knows nothing of files, names or reports: package storm compiles a scenario
// into a [Model] and makes a result of a [Record].
package model
