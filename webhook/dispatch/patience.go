package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
)

const (
	// patience is how long a retry that was refused stays in its slot, for
	// others under way whose success would earn it.
	patience = time.Second
	// restraint is how long a lane claims nothing after one that could not
	// stay: a backlog that may not be retried yet is not put off as a whole.
	restraint = 100 * time.Millisecond
)

// askPatiently asks whether an attempt may be made now. While the budget refuses
// the retry that was put off, it asks again after each success of the endpoint. Not
// more than half of the slots wait in this way: new messages go on. It returns the
// time of the decision, too.
func (j *job) askPatiently() (forbear.Decision, time.Time) {
	l, now := j.lane, j.lane.d.now()
	var over <-chan time.Time
	for {
		earned := j.call.Earned() // before the question, so that no success is missed
		dec := j.call.Ask(context.Background(), now)
		if dec.Reason != forbear.ReasonBudget {
			return dec, now
		}
		if over == nil {
			if !l.mayWait() {
				l.restrain()
				return dec, now
			}
			defer l.waited()
			t := time.NewTimer(patience)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-earned:
		case <-over:
			return dec, now
		case <-l.d.stop:
			return dec, now
		}
		if now = l.d.now(); !j.leaseLasts() {
			return dec, now
		}
	}
}

// mayWait takes one of the places to wait in, when there is something to wait
// for. It is given back with waited.
func (l *lane) mayWait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending == 0 || l.waiting >= max(l.ep.slots()/2, 1) {
		return false
	}
	l.waiting++
	return true
}

// waited gives a place back.
func (l *lane) waited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
}

// restrain makes the lane claim nothing for a moment, or until a success.
func (l *lane) restrain() {
	l.mu.Lock()
	l.restrained = time.Now().Add(restraint)
	l.mu.Unlock()
}
