// Package truth holds the simulator to reality. Each file of testdata is a situation:
// a scenario that the simulator predicts and that is run for real, with net/http's
// servers and transports, forbear's library and plain loops, in virtual time.
//
// It has tests only. docs/simulator-truth.md has their figures; make truth writes them.
package truth
