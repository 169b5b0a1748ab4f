package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
)

const (
	// patience is how long a retry that was refused stays in its slot, for
	// others under way whose success would earn it.
	patience = time.Second
	// restraint is how long a receiver claims nothing after a retry that could not
	// stay: a backlog that may not be retried yet is not postponed as a whole.
	restraint = 100 * time.Millisecond
)

// askPatiently asks whether an attempt may be made now. While the budget refuses
// the retry that was postponed, it asks again after each success of the endpoint. Not
// more than half of the slots wait in this way: new messages go on. It returns the
// time of the decision, too.
func (j *job) askPatiently() (forbear.Decision, time.Time) {
	r, now := j.to, j.to.d.now()
	var over <-chan time.Time
	for {
		earned := j.call.Earned() // before the question, so that no success is missed
		dec := j.call.Ask(context.Background(), now)
		if dec.Reason != reason.Budget {
			return dec, now
		}
		if over == nil {
			if !r.mayWait() {
				return dec, now
			}
			defer r.waited()
			t := time.NewTimer(patience)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-earned:
		case <-over:
			return dec, now
		case <-r.d.stop:
			return dec, now
		}
		if now = r.d.now(); !j.leaseLasts() {
			return dec, now
		}
	}
}

// mayWait takes one of the places to wait in, when there is something to wait for: without
// an attempt under way no success can come. It is given back with waited. Without a place
// nothing is claimed for a moment, or until a success: what is due would be claimed,
// refused and postponed one by one.
func (r *receiver) mayWait() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending == 0 || r.waiting >= max(r.endpoint().slots()/2, 1) {
		r.restrained = time.Now().Add(restraint)
		return false
	}
	r.waiting++
	return true
}

// waited gives a place back.
func (r *receiver) waited() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}
