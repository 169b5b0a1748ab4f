package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// table returns a writer that aligns columns. It must be flushed.
func (q *dlq) table() *tabwriter.Writer { return tabwriter.NewWriter(q.std.Out, 0, 0, 2, ' ', 0) }

// list writes one line for each letter. A full page says how to go on: after
// the id of the last letter. Unlike a page number that stays right when
// letters come or go in the meantime.
//
// Everything that came from senders passes cli.Printable, so that no letter
// can steer the operator's terminal.
func (q *dlq) list(ctx context.Context) (int, error) {
	list, err := q.db.DeadLetters().List(ctx, q.filter)
	// A list is never revealed: one letter at a time can be, and is audited.
	for i := range list {
		list[i] = list[i].Mask()
	}
	const head = "ID\tSTATE\tREASON\tERROR\tDESTINATION\tEVENT\tATTEMPTS\tREDRIVES\tDIED"
	code, err := show(q, list, err, "no such dead letters", head, func(l deadletter.Letter) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s", cli.Printable(l.ID), l.State, cli.Printable(l.Reason), cli.Printable(l.ErrorType), cli.Printable(l.Destination), cli.Printable(l.EventID), l.Attempts, l.Redrives, l.DeadAt.Format(time.RFC3339))
	})
	q.unreadable(list)
	if err == nil && len(list) == q.filter.Limit {
		q.more(list[len(list)-1].ID)
	}
	return code, err
}

// more says how a list goes on behind a full page. That may be the last one: to know,
// another query would be needed.
func (q *dlq) more(last string) {
	fmt.Fprintf(q.std.Err, "forbear: dlq: there may be more: --after %s\n", last)
}

// unreadable says how many of the letters cannot be read with the keys that are given.
func (q *dlq) unreadable(list []deadletter.Letter) {
	n, why := 0, ""
	for _, l := range list {
		if l.Unreadable != "" {
			n, why = n+1, l.Unreadable
		}
	}
	if n > 0 {
		fmt.Fprintf(q.std.Err, "forbear: dlq: %s without payload and headers, such as this: %s\n", deadLetters(n), cli.Printable(why))
	}
}

// show writes a list as a table, whose columns are aligned over all of it, or as
// lines of JSON. It says none where there is nothing.
func show[T any](q *dlq, list []T, err error, none, head string, row func(T) string) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case len(list) == 0:
		return q.nothing(none)
	}
	w := q.table()
	if q.format == "text" {
		fmt.Fprintln(w, head)
	}
	for _, v := range list {
		if !q.json(v) {
			fmt.Fprintln(w, row(v))
		}
	}
	return cli.ExitOK, w.Flush()
}

// stats counts the letters, and the dead ones by cause. An empty queue is a good
// result: exit code 0.
func (q *dlq) stats(ctx context.Context) (int, error) {
	list, err := deadletter.StatsByCause(ctx, q.db.DeadLetters(), q.filter.Limit)
	if err != nil {
		return 0, err
	}
	// JSON has [] for none, and not null, which scripts do not expect.
	if list == nil {
		list = []deadletter.Stat{}
	}
	if q.json(list) {
		return cli.ExitOK, nil
	}
	w := q.table()
	fmt.Fprintln(w, "QUEUE\tREASON\tSTATE\tCOUNT\tOLDEST\tNEWEST")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", cli.Printable(s.Queue), cli.Printable(s.Reason), s.State, s.Count, s.Oldest.Format(time.RFC3339), s.Newest.Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	q.printCauses(list)
	return cli.ExitOK, nil
}

// shortError is how much of an error a table shows, in bytes: a line of a terminal.
const shortError = 100

// printCauses writes the causes of what is dead, behind the table of counts.
func (q *dlq) printCauses(list []deadletter.Stat) {
	w := q.table()
	head := "\nCAUSE\tCOUNT\tDESTINATION\tERROR\tNEWEST\tLATEST\tWHAT\n"
	for _, s := range list {
		for _, c := range s.Causes {
			fmt.Fprint(w, head)
			head = ""
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(cli.Printable(c.Cause), "-"), c.Count, cli.Printable(c.Destination), cli.Printable(c.ErrorType),
				c.Newest.Format(time.RFC3339), cli.Printable(c.Letter), cli.Printable(deadletter.Clip(c.Error, shortError)))
		}
	}
	_ = w.Flush() // as for all that is written to the terminal
}

// noted writes to the audit trail before anything is revealed. What cannot
// be recorded is not shown.
func (q *dlq) noted(ctx context.Context, target string) error {
	if !q.reveal {
		return nil
	}
	return q.db.DeadLetters().Audit(ctx, deadletter.Entry{Who: q.who, Action: "reveal", Target: target, Detail: "dlq command"})
}

// show writes one letter with its history, masked unless --reveal is given.
func (q *dlq) show(ctx context.Context) (int, error) {
	l, err := q.db.DeadLetters().Get(ctx, q.id)
	if err == nil {
		// The entry is written for a letter that exists; asking for
		// another reveals nothing.
		err = q.noted(ctx, l.ID)
	}
	if err != nil {
		return 0, err
	}
	if !q.reveal {
		l = l.Mask()
	}
	if !q.json(l) {
		q.print(&l)
	}
	return cli.ExitOK, q.revealed(l.CheckReadable())
}

// revealed fails a --reveal whose payload cannot be read: it must not pass for an empty one.
func (q *dlq) revealed(unreadable error) error {
	if !q.reveal {
		return nil
	}
	return unreadable
}

// print shows a letter as text, from the reason of its death to its history.
// Text from elsewhere cannot steer the terminal, except for a payload that
// was asked for, which is shown byte by byte.
func (q *dlq) print(l *deadletter.Letter) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(q.std.Out, "  %-12s %s\n", name, cli.Printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(q.std.Out, "%s  %s\n", cli.Printable(l.ID), l.State)
	line("reason", "%s (%s)", l.Reason, l.ErrorType)
	line("what", "%s", l.Description)
	q.printCause(l, line)
	line("queue", "%s", l.Queue)
	line("destination", "%s", l.Destination)
	line("application", "%s", l.Application)
	line("event", "%s  type %s", l.EventID, l.Type)
	line("key", "%s", l.IdempotencyKey)
	line("correlation", "%s", l.CorrelationID)
	if l.TraceID != "" {
		line("trace", "%s", l.TraceID)
	}
	line("policy", "%s", l.PolicyVersion)
	if l.Redrives > 0 {
		line("redriven", "%d times, last by %s: %s", l.Redrives, l.RedrivenBy, l.Outcome)
	}
	if l.Discard != "" {
		line("discarded", "%s", l.Discard)
	}
	line("enqueued", "%s", l.EnqueuedAt.Format(time.RFC3339))
	line("died", "%s", l.DeadAt.Format(time.RFC3339))
	for _, h := range l.Headers {
		line("header", "%s: %s", h.Name, h.Value)
	}
	for _, a := range l.History {
		line(fmt.Sprintf("attempt %d", a.Number), "%s  took %v  status %d  %s", a.At.Format(time.RFC3339Nano), a.Took.Round(time.Millisecond), a.Status, a.ErrorType)
		if a.Error != "" {
			line("  error", "%s", a.Error)
		}
		if a.Response != "" {
			line("  response", "%s", a.Response)
		}
	}
	switch {
	case l.Unreadable != "":
		line("payload", "%s", l.Unreadable)
	case q.reveal:
		fmt.Fprintf(q.std.Out, "  %-12s %s\n", "payload", cli.Printable(string(l.Payload)))
	default:
		line("payload", "%s (--reveal shows it, and is written to the audit trail)", deadletter.Masked)
	}
}

// printCause shows why a letter is dead, as far as it says so: letters of earlier
// versions do not. A stack has a line for each frame.
func (q *dlq) printCause(l *deadletter.Letter, line func(name, format string, args ...any)) {
	if l.Error != "" {
		line("error", "%s", l.Error)
	}
	if len(l.Chain) > 0 {
		line("types", "%s", strings.Join(l.Chain, " > "))
	}
	if l.Cause != "" {
		line("cause", "%s", l.Cause)
	}
	if l.Panic != "" {
		line("panic", "%s", l.Panic)
	}
	for frame := range strings.Lines(l.Stack) {
		line("", "%s", strings.ReplaceAll(frame, "\t", "    "))
	}
}

// discard gives letters up: one, or all that the filter chooses. A reason is
// demanded: months later the audit trail is all that says why an event was never
// delivered.
func (q *dlq) discard(ctx context.Context) (int, error) {
	// Checked here and not in the store: serve's API has its own form of
	// it.
	if q.why == "" && !q.dryRun {
		return 0, errors.New("discard wants a reason: --why")
	}
	if q.id == "" {
		return q.discardMany(ctx)
	}
	if q.filtered || q.all || q.dryRun {
		return 0, errors.New("discard: an id, or a filter")
	}
	if err := q.db.DeadLetters().Discard(ctx, q.id, q.who, q.why); err != nil {
		return 0, err
	}
	if !q.json(map[string]string{"id": q.id, "state": string(deadletter.Discarded)}) {
		fmt.Fprintf(q.std.Out, "%s discarded\n", q.id)
	}
	return cli.ExitOK, nil
}

// discardMany gives up what the filter chooses.
func (q *dlq) discardMany(ctx context.Context) (n int, err error) {
	if !q.filtered && !q.all {
		return 0, errors.New("discard: which letters? (an id, a filter flag, or --all)")
	}
	q.filter.Queue = cmp.Or(q.filter.Queue, webhook.Queue)
	f, err := q.filter.Discardable()
	if err != nil {
		return 0, fmt.Errorf("discard: %w", err)
	}
	done := "discarded"
	if q.dryRun {
		done = "would be discarded"
		n, err = q.db.DeadLetters().Count(ctx, f)
	} else {
		n, err = deadletter.DiscardAll(ctx, q.db.DeadLetters(), f, q.who, q.why)
	}
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return q.nothing("no such dead letters")
	}
	if !q.json(map[string]any{"dry_run": q.dryRun, "count": n}) {
		fmt.Fprintf(q.std.Out, "%s %s\n", deadLetters(n), done)
	}
	return cli.ExitOK, nil
}

// export writes all letters that the filter chooses, page by page: an export
// may be larger than the memory. Letters that die while it runs are included
// or not, depending on where it is.
func (q *dlq) export(ctx context.Context) (int, error) {
	if err := q.noted(ctx, "export"); err != nil {
		return 0, err
	}
	// --limit is for lists: a cut-off export would look complete.
	q.filter.Limit = deadletter.MaxList
	n, unreadable := 0, error(nil)
	for {
		list, err := q.db.DeadLetters().List(ctx, q.filter)
		if err != nil {
			return 0, err
		}
		if len(list) == 0 {
			break
		}
		q.unreadable(list)
		for _, l := range list {
			// Set before writing, so that a page is never read twice.
			q.filter.After = l.ID
			unreadable = cmp.Or(unreadable, l.CheckReadable())
			if err := q.line(l); err != nil {
				return 0, err
			}
			n++
		}
	}
	if n == 0 {
		return q.nothing("no such dead letters")
	}
	q.leftOut()
	return cli.ExitOK, q.revealed(unreadable)
}

// leftOut says what an export that was not asked to reveal lacks: a file that is kept for
// later must not be taken for a whole one.
func (q *dlq) leftOut() {
	if !q.reveal {
		fmt.Fprintln(q.std.Err, "forbear: dlq: payloads, what errors quote and values of headers were left out: --reveal writes them, and is written to the audit trail")
	}
}

// line writes a letter as a line of JSON, masked unless more was asked for.
// The format is that of deadletter.Export, which read takes back.
func (q *dlq) line(l deadletter.Letter) error {
	if !q.reveal {
		l = l.Mask()
	}
	return deadletter.Export(q.std.Out, l)
}

// read prints an export that serve wrote before its letters expired. It
// needs the database as well, for the audit trail: a payload that has left
// the database has not left the rule that revealing it is recorded.
func (q *dlq) read(ctx context.Context) (int, error) {
	f, err := os.Open(q.id)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	if err := q.noted(ctx, "file "+q.id); err != nil {
		return 0, err
	}
	// One letter is in memory at a time, as in export.
	if err := deadletter.ReadExport(f, q.cipher, q.line); err != nil {
		return 0, fmt.Errorf("%s: %w", q.id, err)
	}
	q.leftOut()
	return cli.ExitOK, nil
}

// audits writes the latest entries of the audit trail, the newest first, within the
// times that are asked for. The trail cannot be changed from here.
func (q *dlq) audits(ctx context.Context) (int, error) {
	f := deadletter.AuditFilter{Since: q.filter.Since, Until: q.filter.Until}
	list, next, err := q.db.DeadLetters().AuditPage(ctx, f, 0, q.filter.Limit)
	for err == nil && next != 0 && len(list) < q.filter.Limit {
		var more []deadletter.Entry
		more, next, err = q.db.DeadLetters().AuditPage(ctx, f, next, q.filter.Limit-len(list))
		list = append(list, more...)
	}
	return show(q, list, err, "the audit trail is empty", "AT\tWHO\tACTION\tTARGET\tDETAIL", func(e deadletter.Entry) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.At.Format(time.RFC3339), cli.Printable(e.Who), e.Action, cli.Printable(e.Target), cli.Printable(e.Detail))
	})
}
