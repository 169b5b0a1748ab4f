// Package engine treats every request as itself: it is a discrete-event simulation of
// arrivals, FIFO queues, timeouts, retries and layers. Its cost grows with the number of requests, at about 250 ns for an
// event in trouble; in steady state an event allocates nothing.
//
// Time is an int64 of nanoseconds since the start of the run, which the clock of
// budgets and breakers sees as [model.StartOfTime] and later. All randomness comes
// from five streams that the seed starts, so that a change in the one (a policy
// that draws more waits) does not move the others (the arrivals): two policies are
// compared under the same load.
//
// A call ([call]) is what a client wants; a task is one attempt of it, as the
// service sees it. Both are kept in slices and named by their index, and a
// generation tells what is still wanted from what comes too late: the service goes
// on working on an attempt whose client has given up.
package engine
