package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

// writeBack hands what became of the delivery to the main loop, and ends the job.
// after is when the delivery is due again.
func (j *job) writeBack(kind store.WriteBackKind, after time.Duration) {
	o := j.outcome(kind)
	o.After = after
	j.to.d.outcomes <- o
}

// release gives the delivery back as it was, unattempted.
func (j *job) release(after time.Duration) { j.writeBack(store.Released, after) }

// deadLetter ends the delivery. The store writes the letter with the
// outcome, in one step, and raises its alert.
func (j *job) deadLetter(why forbear.Reason) {
	d, ep := j.to.d, j.to.config()
	o := j.outcome(store.Dead)
	o.Dead, o.Why = j.delivery.DeadLetter(&ep, why, j.ep.retryer.Policy().MaxAttempts, d.now()), why
	if j.made != nil {
		o.Dead.SetCause(j.made.cause)
	}
	d.stats.dead.Add(1)
	d.outcomes <- o
}

// outcome begins the record that the store is given.
func (j *job) outcome(kind store.WriteBackKind) store.WriteBack {
	dl := j.delivery
	o := store.WriteBack{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Kind: kind}
	if j.call != nil {
		dl.Progress = j.call.Progress
	}
	if o.Progress = dl.Progress; j.made != nil {
		o.Attempt = &j.made.record
	}
	return o
}

// written learns from outcomes that the store has taken: when what was postponed is
// due, and which dead letters the observers have to see. ok is false for a
// delivery whose lease has passed to another process.
func (d *Dispatcher) written(batch []store.WriteBack, ok []bool) {
	now := time.Now()
	for i := range batch {
		o := &batch[i]
		if !ok[i] {
			d.log.Warn("lease lost: another process has the delivery", slog.String("endpoint", o.Endpoint))
			continue
		}
		if r := d.receiver(o.Endpoint); r != nil && o.Kind == store.Dead {
			edge.DeadLettered(context.Background(), r.endpoint().retryer, o.Dead.Queue, o.Why)
		}
		// After is 0 when it is over; then the next message of the key may go.
		if over := o.Kind == store.Delivered || o.Kind == store.Dead; !over || o.OrderKey != "" {
			d.dueAt(o.Endpoint, now.Add(o.After))
		}
	}
	d.wake()
}

// unwritten returns those of a batch that a step which failed has not written, and
// learns from the others.
func (d *Dispatcher) unwritten(batch []store.WriteBack, ok []bool) (rest []store.WriteBack) {
	if ok == nil {
		return batch
	}
	var done []store.WriteBack
	for i := range batch {
		if ok[i] {
			done = append(done, batch[i])
		} else {
			rest = append(rest, batch[i])
		}
	}
	d.written(done, slices.Repeat([]bool{true}, len(done)))
	return rest
}

const (
	// rewriteFor is how long outcomes are tried to be written. It is long, since
	// what was sent would be sent again: a store that is back before the leases
	// end, or before another process looks, still takes them.
	rewriteFor = 5 * time.Minute
	// rewriteAtStop is how many tries there are at least when Run is to end: a
	// few seconds' worth.
	rewriteAtStop = 6
)

// rewrite writes outcomes that the store did not take at first. They claim nothing:
// the loop does that, and the leases of what this would claim might not last.
func (d *Dispatcher) rewrite(ctx context.Context, batch []store.WriteBack, err error) {
	deadline := time.Now().Add(rewriteFor)
	backoff := wait.Backoff{Base: 20 * time.Millisecond, Cap: 2 * time.Second}
	for tries := 0; ; tries++ {
		d.log.Warn("outcomes not written back", slog.Int("deliveries", len(batch)), slog.String("error", err.Error()))
		if time.Now().After(deadline) || d.stopping() && tries >= rewriteAtStop {
			d.log.Error("outcomes lost: their deliveries will be sent again", slog.Int("deliveries", len(batch)))
			return
		}
		wait.Sleep(ctx, backoff.Next())
		var done store.StepResult
		if done, err = d.inStore(ctx, partOutcomes, store.Step{WriteBacks: batch}); err == nil {
			d.written(batch, done.OK)
			return
		}
		if batch = d.unwritten(batch, done.OK); len(batch) == 0 {
			return
		}
	}
}
