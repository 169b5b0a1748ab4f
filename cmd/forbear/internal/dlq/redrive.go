package dlq

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// redrive writes the job of a redrive, for a running serve to send. The plan
// is made here, so that the operator sees the count before anything is sent,
// and --dry-run shows exactly what would be done.
func (q *dlq) redrive(ctx context.Context) error {
	if q.ID != "" {
		l, err := q.db.DeadLetters().Get(ctx, q.ID)
		if err != nil {
			return err
		}
		// An id is enough: its queue says which sender the job is for.
		q.filter.IDs, q.filter.Queue = []string{q.ID}, l.Queue
	}
	// The limit is that of a list: a redrive takes all that the filter chooses.
	q.filter.Queue, q.filter.Limit = cmp.Or(q.filter.Queue, webhook.Queue), 0
	// The target is nil: serve sends, and here the job is only written.
	r := queue.NewRedriver(q.db.DeadLetters(), "", map[string]queue.Target{q.filter.Queue: nil}, nil)
	q.job.Filter, q.job.By = q.filter, q.Actor
	plan, err := r.Plan(ctx, q.job)
	switch {
	case err != nil:
		return err
	case q.dryRun:
		q.Say(map[string]any{"dry_run": true, "count": plan.Total}, "%s would be redriven", deadLetters(plan.Total))
		return nil
	case plan.Total == 0: // an empty job would be done at once, and look like a success
		return q.noneToRedrive(ctx)
	}
	// From here on the letters are sent whether or not this command goes on.
	j, err := r.Start(ctx, q.job, webhook.NewID("rdr"))
	if err != nil {
		return err
	}
	if q.wait {
		return q.await(ctx, j)
	}
	sender := "a running forbear serve"
	if j.Filter.Queue != webhook.Queue {
		sender = "a running consumer of " + j.Filter.Queue
	}
	q.Say(j, "%s: %s, at %v a second; %s sends them", j.ID, deadLetters(j.Total), j.Rate, sender)
	return nil
}

// noneToRedrive says why there is nothing to do.
func (q *dlq) noneToRedrive(ctx context.Context) error {
	any, err := q.db.DeadLetters().Count(ctx, q.filter)
	switch {
	case err != nil:
		return err
	case any == 0:
		return verb.Negative("no letters of queue %s match: forbear dlq stats counts those of each queue (--queue)", q.filter.Queue)
	}
	return verb.Negative("no dead letters to redrive: they are in another state (see forbear dlq stats), or were redriven too often (--max-redrives)")
}

// await waits for the end of a redrive, with its progress on a terminal: in a file it
// would be thousands of lines. The job belongs to serve, and goes on when the operator
// stops waiting.
func (q *dlq) await(ctx context.Context, j queue.Job) (err error) {
	live, begun, told := cli.Terminal(q.Err), time.Now(), false
	for j.State.Open() {
		if !told && j.State == queue.JobPaused {
			told = true
			fmt.Fprintf(q.Err, "forbear: dlq: the redrive is paused: forbear dlq resume %s goes on\n", j.ID)
		}
		if !told && j.Begun == 0 && time.Since(begun) > 5*time.Second {
			told = true
			fmt.Fprintf(q.Err, "forbear: dlq: nothing is sent yet: is forbear serve, or the queue's consumer, running on this database?\n")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the redrive continues; to stop it: forbear dlq pause %s", j.ID)
		// Five looks a second are smooth on a terminal and cost a database nothing.
		case <-time.After(200 * time.Millisecond):
		}
		if j, err = q.db.DeadLetters().Job(ctx, j.ID); err != nil {
			return err
		}
		if live {
			fmt.Fprintf(q.Err, "\r\x1b[K%s", progress(&j))
		}
	}
	if live {
		fmt.Fprint(q.Err, "\r\x1b[K")
	}
	q.Say(j, "%s", progress(&j))
	// Canceled, stopped, had to leave some, or some failed again: not all arrived.
	if j.State != queue.JobDone || j.Why != "" || j.Delivered < j.Total {
		return verb.ErrNegative
	}
	return nil
}

// progress is a redrive in one line, short enough to be rewritten in place while it runs.
// Why is set when it stopped itself, had to leave letters that cannot be read, or had one
// refused.
func progress(j *queue.Job) string {
	s := fmt.Sprintf("%s %s: %d of %d sent, %d delivered, %d failing", j.ID, j.State, j.Begun, j.Total, j.Delivered, j.Failing)
	if j.State.Open() {
		return s
	}
	if j.Failing > 0 {
		s += "; forbear dlq stats says why"
	}
	if j.Why != "" {
		s += " (" + j.Why + ")"
	}
	return s
}

// redrives lists a page of the redrives and how far they have come, the newest first.
func (q *dlq) redrives(ctx context.Context) error {
	list, err := q.db.DeadLetters().JobPage(ctx, q.filter.Application, q.filter.After, q.filter.Limit)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return verb.Negative("no redrives")
	}
	t := q.Table("ID STATE SENT TOTAL DELIVERED FAILING RATE BY CREATED WHY")
	for _, j := range list {
		t.Add(j, j.ID, j.State, j.Begun, j.Total, j.Delivered, j.Failing, fmt.Sprint(j.Rate, "/s"), j.By, j.Created, j.Why)
	}
	t.Flush()
	if len(list) == q.filter.Limit {
		q.More(list[len(list)-1].ID)
	}
	return nil
}

// setJob pauses, resumes or cancels a redrive. The state is in the database:
// a serve that sends its letters reads it there before each batch, wherever
// it runs.
func (q *dlq) setJob(state queue.JobState) func(context.Context) error {
	return func(ctx context.Context) error {
		// An unknown id is distinguished from a redrive that is over: both
		// refuse, with different errors.
		if _, err := q.db.DeadLetters().Job(ctx, q.ID); err != nil {
			return err
		}
		if err := q.db.DeadLetters().SetJobState(ctx, q.ID, state, q.Actor); err != nil {
			return err
		}
		q.Say(map[string]string{"id": q.ID, "state": string(state)}, "%s %s", q.ID, state)
		return nil
	}
}

// discard gives letters up: one, or all that the filter chooses.
func (q *dlq) discard(ctx context.Context) error {
	letters := q.db.DeadLetters()
	if q.ID != "" {
		err := letters.Discard(ctx, q.ID, q.Actor, q.why)
		if err == nil {
			q.Say(map[string]string{"id": q.ID, "state": string(deadletter.Discarded)}, "%s discarded", q.ID)
		}
		return err
	}
	q.filter.Queue = cmp.Or(q.filter.Queue, webhook.Queue)
	f, err := q.filter.Discardable()
	if err != nil {
		return fmt.Errorf("discard: %w", err)
	}
	n, done := 0, "discarded"
	if q.dryRun {
		done = "would be discarded"
		n, err = letters.Count(ctx, f)
	} else {
		n, err = queue.DiscardAll(ctx, letters, f, q.Actor, q.why)
	}
	switch {
	case err != nil:
		return err
	case n == 0:
		return errNone
	}
	q.Say(map[string]any{"dry_run": q.dryRun, "count": n}, "%s %s", deadLetters(n), done)
	return nil
}
