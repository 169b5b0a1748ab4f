// Package batch runs a function over many items: several at once, each with
// its own retries, all under one budget and one breaker, with a report of what
// became of them.
//
//	report, err := batch.Run(ctx, retryer, slices.Values(invoices), send, batch.Options[Invoice]{
//		ID:      func(i Invoice) string { return i.Number },
//		Journal: journal, // a later run skips what this one has finished
//		DLQ:     store,   // takes what cannot be done
//	})
//
// An item is done, failed or postponed. It has failed when the policy gives it
// up: its retries are used, or its error is final. It is postponed when
// the moment is wrong, not the item: the budget refuses its retry, or
// the breaker is open. The run does not hammer a dependency that is down: while
// the breaker refuses calls all workers pause, longer and longer, and when that
// outlasts [Options.Patience] the run ends with [ErrPostponed] and leaves the
// rest to a later one.
//
// With a [Journal] a run can be repeated after a crash, a deployment or a
// postponement, and does what is left. An item runs at least once: when a
// process dies between the work and the mark in the journal, the item runs
// again. Functions that must not repeat their effect use the item's id as a
// key.
package batch
