package dlq

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/deadletter"
)

// note writes a --reveal to the audit trail.
func (q *dlq) note(ctx context.Context, target string) error {
	if !q.reveal {
		return nil
	}
	return q.db.Reveal(ctx, q.Run, target, "dlq command")
}

// show writes one letter with its history, masked unless --reveal is given. A payload
// that cannot be read fails a --reveal: it must not pass for an empty one.
func (q *dlq) show(ctx context.Context) error {
	l, err := q.db.DeadLetters().Get(ctx, q.ID)
	if err == nil { // asking for a letter that does not exist reveals nothing
		err = q.note(ctx, l.ID)
	}
	if err != nil {
		return err
	}
	unreadable := l.CheckReadable()
	if !q.reveal {
		l, unreadable = l.Mask(), nil
	}
	if !q.JSON(l) {
		q.print(&l)
	}
	return unreadable
}

// print shows a letter as text, from the reason of its death to its history. A line
// whose name ends in a question mark is left out when it has no value: letters of
// earlier versions say less.
func (q *dlq) print(l *deadletter.Letter) {
	fmt.Fprintf(q.Out, "%s  %s\n", cli.Printable(l.ID), l.State)
	line := func(name, value string) {
		if name, optional := strings.CutSuffix(name, "?"); !optional || value != "" {
			fmt.Fprintf(q.Out, "  %-12s %s\n", name, cli.Printable(value))
		}
	}
	reason := l.Reason
	if l.ErrorType != "" {
		reason += " (" + l.ErrorType + ")"
	}
	line("reason", reason)
	line("what?", l.Description)
	line("error?", l.Error)
	line("types?", strings.Join(l.Chain, " > "))
	line("cause?", l.Cause)
	line("panic?", l.Panic)
	for frame := range strings.Lines(l.Stack) {
		line("", strings.ReplaceAll(frame, "\t", "    "))
	}
	line("queue", l.Queue)
	line("destination", l.Destination)
	line("application?", l.Application)
	line("event", strings.TrimSuffix(l.EventID+"  type "+l.Type, "  type "))
	line("key?", l.IdempotencyKey)
	line("correlation?", l.CorrelationID)
	line("trace?", l.TraceID)
	line("policy?", l.PolicyVersion)
	if l.Redrives > 0 {
		line("redriven", fmt.Sprintf("%d times, last by %s: %s", l.Redrives, l.RedrivenBy, l.Outcome))
	}
	line("discarded?", l.Discard)
	line("enqueued", l.EnqueuedAt.Format(time.RFC3339))
	line("died", l.DeadAt.Format(time.RFC3339))
	for _, h := range l.Headers {
		line("header", h.Name+": "+h.Value)
	}
	for _, a := range l.History {
		status := ""
		if a.Status != 0 {
			status = fmt.Sprintf("  status %d", a.Status)
		}
		line(fmt.Sprintf("attempt %d", a.Number), fmt.Sprintf("%s  took %v%s  %s", a.At.Format(time.RFC3339Nano), a.Took.Round(time.Millisecond), status, a.ErrorType))
		line("  error?", a.Error)
		line("  response?", a.Response)
	}
	switch {
	case l.Unreadable != "":
		line("payload", l.Unreadable)
	case q.reveal:
		line("payload", string(l.Payload))
	default:
		line("payload", deadletter.Masked+" (add --reveal to see it; recorded in the audit trail)")
	}
}
