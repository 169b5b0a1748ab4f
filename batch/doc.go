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
// up: its retries are used, its time is over, or its error is final.
// It is postponed, left to a later run, when the moment was wrong and not the
// item: the run was ended, or the item's time was over and the breaker had been
// open in it.
//
// An item that waits keeps no worker. Items in their backoff wait in memory, and
// so do those whose retry the budget refuses, until successes of the
// dependency have earned them one. While the breaker is open no item is fetched and
// nothing is sent. Then one probe goes first. When all that outlasts
// [Options.Patience] the run ends with [ErrPostponed] and leaves the rest to a
// later one.
//
// With a [Journal] a run can be repeated after a crash, a deployment or a
// postponement, and does what is left. An item runs at least once: when a
// process dies between the work and the mark in the journal, the item runs
// again. Functions that must not repeat their effect use the item's id as a
// key.
//
// Experimental: what this package exports may change in any version.
package batch
