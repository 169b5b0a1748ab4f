package dlq

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// errNone is the result of a filter that chooses nothing.
var errNone = verb.Negative("no such dead letters")

// list writes one line for each letter. A list is never revealed: one letter at a time
// can be, and is audited.
func (q *dlq) list(ctx context.Context) error {
	list, err := q.db.DeadLetters().List(ctx, q.filter)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return errNone
	}
	t := q.Table("ID STATE REASON ERROR DESTINATION EVENT ATTEMPTS REDRIVES DIED")
	for _, l := range list {
		t.Add(l.Mask(), l.ID, l.State, l.Reason, l.ErrorType, l.Destination, l.EventID, l.Attempts, l.Redrives, l.DeadAt)
	}
	t.Flush()
	q.sayUnreadable(list)
	if len(list) == q.filter.Limit {
		q.More(list[len(list)-1].ID)
	}
	return nil
}

// sayUnreadable says how many of the letters cannot be read with the keys that are given.
func (q *dlq) sayUnreadable(list []deadletter.Letter) {
	n, why := 0, ""
	for _, l := range list {
		if l.Unreadable != "" {
			n, why = n+1, l.Unreadable
		}
	}
	if n > 0 {
		fmt.Fprintf(q.Err, "forbear: dlq: %s without payload and headers, for example: %s\n", deadLetters(n), cli.Printable(why))
	}
}

// shortError is how much of an error a table shows, in bytes: a line of a terminal.
const shortError = 100

// stats counts the letters, and the dead ones by cause. An empty queue is a good result.
func (q *dlq) stats(ctx context.Context) error {
	list, err := queue.StatsByCause(ctx, q.db.DeadLetters(), q.filter.Limit)
	if err != nil {
		return err
	}
	// JSON has [] for none, and not null, which scripts do not expect.
	if q.JSON(append([]queue.Stat{}, list...)) {
		return nil
	}
	counts, causes := q.Table("QUEUE REASON STATE COUNT OLDEST NEWEST"), q.Table("CAUSE COUNT DESTINATION ERROR NEWEST LATEST WHAT")
	counts.Head()
	for _, s := range list {
		counts.Add(s, s.Queue, s.Reason, s.State, s.Count, s.Oldest, s.Newest)
		for _, c := range s.Causes {
			causes.Add(c, cmp.Or(c.Cause, "-"), c.Count, c.Destination, c.ErrorType, c.Newest, c.Letter, deadletter.Clip(c.Error, shortError))
		}
	}
	counts.Flush()
	if causes.Rows > 0 {
		fmt.Fprintln(q.Out)
	}
	causes.Flush()
	return nil
}

// audit writes the latest entries of the audit trail, the newest first, within the
// times that are asked for.
func (q *dlq) audit(ctx context.Context) error {
	f := queue.AuditFilter{Since: q.filter.Since, Until: q.filter.Until}
	t := q.Table("AT WHO ACTION TARGET DETAIL")
	for next := int64(0); t.Rows < q.filter.Limit; {
		list, after, err := q.db.DeadLetters().AuditPage(ctx, f, next, q.filter.Limit-t.Rows)
		if err != nil {
			return err
		}
		for _, e := range list {
			t.Add(e, e.At, e.Who, e.Action, e.Target, e.Detail)
		}
		if next = after; next == 0 {
			break
		}
	}
	t.Flush()
	if t.Rows == 0 {
		return verb.Negative("the audit trail is empty")
	}
	return nil
}

// export writes all letters that the filter chooses, page by page: an export
// may be larger than the memory. Letters that die while it runs are included
// or not, depending on where it is.
func (q *dlq) export(ctx context.Context) error {
	if err := q.note(ctx, "export"); err != nil {
		return err
	}
	// --limit is for lists: a cut-off export would look complete.
	q.filter.Limit = queue.MaxList
	n, unreadable := 0, error(nil)
	for {
		list, err := q.db.DeadLetters().List(ctx, q.filter)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		q.sayUnreadable(list)
		for _, l := range list {
			q.filter.After = l.ID
			unreadable = cmp.Or(unreadable, l.CheckReadable())
			if err := q.write(l); err != nil {
				return err
			}
			n++
		}
	}
	switch {
	case n == 0:
		return errNone
	case q.reveal:
		return unreadable
	}
	q.sayMasked()
	return nil
}

// read prints an export that serve wrote before its letters expired. It
// needs the database as well, for the audit trail: a payload that has left
// the database has not left the rule that revealing it is recorded.
func (q *dlq) read(ctx context.Context) error {
	f, err := os.Open(q.ID)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := q.note(ctx, "file "+q.ID); err != nil {
		return err
	}
	if err := queue.ReadExport(f, q.db.Cipher, q.write); err != nil {
		return fmt.Errorf("%s: %w", q.ID, err)
	}
	if !q.reveal {
		q.sayMasked()
	}
	return nil
}

// write writes a letter as a line of JSON, in the format that read takes back.
func (q *dlq) write(l deadletter.Letter) error {
	if !q.reveal {
		l = l.Mask()
	}
	return queue.Export(q.Out, l)
}

// sayMasked says what a masked export lacks: a file that is kept for later must not be
// taken for a whole one.
func (q *dlq) sayMasked() {
	fmt.Fprintln(q.Err, "forbear: dlq: payloads, header values and quoted parts of errors are masked: add --reveal (recorded in the audit trail)")
}
