package store

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

// Step is what a dispatcher wants of its store: either part may be empty.
type Step struct {
	WriteBacks []WriteBack
	// Owner names who takes deliveries, under leases of this length.
	Owner string
	Lease time.Duration
	Lanes []Lane
}

// StepResult is the result of a Step. OK has a place for each outcome: false for one
// whose lease has passed to another, for which nothing was written. After an error OK is
// nil, or true for those that were written before it. Next lists
// the lanes that got less than they wanted when more will be due; one that has
// nothing waiting is not among them.
type StepResult struct {
	OK      []bool
	Claimed []Delivery
	Next    []NextDue
}

// NextDue is when the first waiting delivery of an endpoint is due; In is negative
// when it is due already.
type NextDue struct {
	Endpoint string
	In       time.Duration
}

// Lane is how many deliveries may be claimed for an endpoint.
type Lane struct {
	Endpoint string
	Max      int
}

// WriteBack is what became of a claimed delivery.
type WriteBack struct {
	ID       int64
	Fence    int64
	Endpoint string
	OrderKey string

	Kind WriteBackKind
	// After is when the delivery is due again: for Retried, Postponed and
	// Released.
	After    time.Duration
	Progress edge.Progress
	// Attempt is the record of the attempt; nil when none was made.
	Attempt *deadletter.Attempt
	// Dead is the letter, for Dead. The store adds the history that it has.
	Dead *deadletter.Letter

	// Unreadable says, with Released, that the message cannot be read. The store counts
	// such deliveries until they are claimed again.
	Unreadable bool

	// Why is the reason of Dead for the observers. The store has no use for it.
	Why forbear.Reason
}

// WriteBackKind says how a delivery goes on.
type WriteBackKind uint8

const (
	Delivered WriteBackKind = iota + 1
	Retried                 // failed, and due again
	Postponed               // no attempt made, due again
	Released                // given back as it was, unattempted
	Dead                    // failed, and not retried
)
