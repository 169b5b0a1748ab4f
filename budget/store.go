package budget

import (
	"context"
	"time"
)

// Store is where the instances of a service keep the one budget that they
// share; see [Fleet]. Its time is its own clock's: those of the instances
// need not agree. Implementations are safe for concurrent use, and
// storetest.RunBudget holds them to what follows.
//
// Sync is one atomic step for the budget named key:
//
//   - It books what s.Total has grown by since the instance last reported, into
//     the slots of s.Recent, the newest first. What does not fit into Recent is
//     older than the window and is dropped. A Retries that shrank was refunded:
//     it is taken from the newest slots. Of an instance that the store does not
//     know it books all of Recent: so a store that has lost its data learns
//     them anew, and a report that is sent twice is booked once.
//   - It lets the instance hold s.Hold retries, and more, up to s.Want, as long
//     as the retries in the window and those held by all come to at most
//     s.Limit. A budget that is younger than s.Lease grants no more: its
//     instances may not have reported yet.
//   - A hold ends with its lease, counted from this step. An instance that has
//     not come back by then counts as gone, and what it held as spent. What is
//     known of its total is kept for another window at least, so that nothing
//     is booked twice when it does come back.
//   - It returns the sums of the window: without the initial requests of the
//     slot at its edge, with the retries of that slot.
type Store interface {
	Sync(ctx context.Context, key string, window time.Duration, s Report) (Reading, error)
}

// Usage counts what was sent.
type Usage struct {
	Initial int64 // first attempts
	Retries int64
}

// Report is what one instance reports to a [Store].
type Report struct {
	Instance string // unique among all instances, of all time
	Total    Usage  // since the instance began
	// Recent is the part of Total that lies in the window, cut into 30 slots of
	// equal width, the newest first; empty slots at the end may be missing.
	Recent []Usage
	Hold   int64 // retries granted before and not yet spent, which it keeps
	Want   int64 // retries that it would like to hold
	Limit  int64 // the bound on retries and holds of the whole fleet
	Lease  time.Duration
	Leave  bool // the last report of this instance: it holds nothing
}

// Reading is the reading of a budget right after a [Report].
type Reading struct {
	Usage
	Held      int64 // by all instances, this one included
	Granted   int64 // held by this one: at least its Hold
	Instances int   // that hold a lease, this one included
}
