package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// redrive writes the job of a redrive, for a running serve to send. The plan
// is made here, so that the operator sees the count before anything is sent,
// and --dry-run shows exactly what would be done.
func (q *dlq) redrive(ctx context.Context) (int, error) {
	if q.id != "" {
		l, err := q.db.DeadLetters().Get(ctx, q.id)
		if err != nil {
			return 0, err
		}
		// An id is enough: its queue says which sender the job is for.
		q.filter.IDs, q.filter.Queue = []string{q.id}, l.Queue
	} else if !q.filtered && !q.all {
		return 0, errors.New("redrive: which letters? (an id, a filter flag, or --all)")
	}
	// The limit is that of a list: a redrive takes all that the filter chooses.
	q.filter.Queue, q.filter.Limit = cmp.Or(q.filter.Queue, webhook.Queue), 0
	// The target is nil: serve sends, and here the job is only written.
	r := deadletter.NewRedriver(q.db.DeadLetters(), "", map[string]deadletter.Target{q.filter.Queue: nil}, nil)
	// The name goes into the audit trail with the job, and again with each
	// letter.
	q.job.Filter, q.job.By = q.filter, q.who
	plan, err := r.Plan(ctx, q.job)
	if err != nil {
		return 0, err
	}
	// A dry run has nothing to write and leaves no entry in the audit
	// trail.
	if q.dryRun {
		if !q.json(map[string]any{"dry_run": true, "count": plan.Total}) {
			fmt.Fprintf(q.std.Out, "%s would be redriven\n", deadLetters(plan.Total))
		}
		return cli.ExitOK, nil
	}
	// An empty job would be done at once, and look like a success.
	if plan.Total == 0 {
		return q.nothing("no dead letters to redrive: they are in another state, or were redriven too often (--max-redrives)")
	}
	// From here on the letters are sent whether or not this command goes
	// on.
	j, err := r.Start(ctx, q.job, webhook.NewID("rdr"))
	if err != nil {
		return 0, err
	}
	if q.wait {
		return q.await(ctx, j)
	}
	if !q.json(j) {
		fmt.Fprintf(q.std.Out, "%s: %s, at %v a second; a running serve sends them\n", j.ID, deadLetters(j.Total), j.Rate)
	}
	return cli.ExitOK, nil
}

// deadLetters is a count with its noun.
func deadLetters(n int) string {
	if n == 1 {
		return "1 dead letter"
	}
	return fmt.Sprint(n, " dead letters")
}

// await waits for the end of a redrive, with its progress on a terminal. The
// job belongs to serve: when the operator stops waiting, the redrive goes
// on, and the message says how to pause it.
func (q *dlq) await(ctx context.Context, j deadletter.Job) (_ int, err error) {
	// Progress is for a person: in a file it would be thousands of lines.
	live := cli.Terminal(q.std.Err)
	for j.State.Open() {
		select {
		case <-ctx.Done():
			fmt.Fprintf(q.std.Err, "\nforbear: dlq: the redrive goes on without you: forbear dlq pause %s\n", j.ID)
			return cli.ExitUsage, nil
		// Five looks a second are smooth on a terminal and cost a database
		// nothing.
		case <-time.After(200 * time.Millisecond):
		}
		if j, err = q.db.DeadLetters().Job(ctx, j.ID); err != nil {
			return 0, err
		}
		if live {
			fmt.Fprintf(q.std.Err, "\r\x1b[K%s", progress(&j))
		}
	}
	if live {
		fmt.Fprint(q.std.Err, "\r\x1b[K")
	}
	if !q.json(j) {
		fmt.Fprintln(q.std.Out, progress(&j))
	}
	// Canceled, stopped by its failures, or had to leave some: not all letters were sent.
	if j.State != deadletter.JobDone || j.Why != "" {
		return cli.ExitFound, nil
	}
	return cli.ExitOK, nil
}

// progress is a redrive in one line, short enough to be rewritten in place.
func progress(j *deadletter.Job) string {
	s := fmt.Sprintf("%s %s: %d of %d sent, %d delivered, %d failing", j.ID, j.State, j.Begun, j.Total, j.Delivered, j.Failing)
	// Why is set when the redrive stopped itself, such as at too many
	// failures, or had to leave letters that cannot be read.
	if j.Why != "" {
		s += " (" + j.Why + ")"
	}
	return s
}

// redrives lists a page of the redrives and how far they have come, the newest first.
func (q *dlq) redrives(ctx context.Context) (int, error) {
	list, err := q.db.DeadLetters().JobPage(ctx, q.filter.Application, q.filter.After, q.filter.Limit)
	const head = "ID\tSTATE\tSENT\tTOTAL\tDELIVERED\tFAILING\tRATE\tBY\tCREATED\tWHY"
	code, err := show(q, list, err, "no redrives", head, func(j deadletter.Job) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%v/s\t%s\t%s\t%s", j.ID, j.State, j.Begun, j.Total, j.Delivered, j.Failing, j.Rate, cli.Printable(j.By), j.Created.Format(time.RFC3339), j.Why)
	})
	if err == nil && len(list) == q.filter.Limit {
		q.more(list[len(list)-1].ID)
	}
	return code, err
}

// setJob pauses, resumes or cancels a redrive. The state is in the database:
// a serve that sends its letters reads it there before each batch, wherever
// it runs.
func setJob(state deadletter.JobState) func(*dlq, context.Context) (int, error) {
	return func(q *dlq, ctx context.Context) (int, error) {
		// An unknown id is distinguished from a redrive that is over: both
		// refuse, with different errors.
		if _, err := q.db.DeadLetters().Job(ctx, q.id); err != nil {
			return 0, err
		}
		if err := q.db.DeadLetters().SetJobState(ctx, q.id, state, q.who); err != nil {
			return 0, err
		}
		if !q.json(map[string]string{"id": q.id, "state": string(state)}) {
			fmt.Fprintf(q.std.Out, "%s %s\n", q.id, state)
		}
		return cli.ExitOK, nil
	}
}
