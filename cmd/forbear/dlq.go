package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os/user"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

func dlqCommand() *command {
	c := &command{
		name:    "dlq",
		summary: "list, show, redrive, discard, export and count dead letters",
		usage:   "list|show|redrive|discard|export|stats|pause|resume|cancel [FLAGS] [ID]",
		about: `
Dlq works on the database that serve works on. Lists and exports mask payloads
and credentials; --reveal shows them, and is written to the audit trail with
your name first.

Redrive sends the letters that the filter chooses on their way again, with the
id and key that they had: --dry-run only counts them; --canary sends one and the
others when it was delivered. A running serve does the sending, at --rate a
second, and stops when more than --stop-ratio of the outcomes are failures.
Without a filter flag, an id, or --all it refuses.

Exit code 1 means that nothing was found, or that a redrive was stopped.`,
		examples: `
forbear dlq stats
forbear dlq list --reason exhausted --since 24h
forbear dlq show --reveal dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq redrive --destination acme --dry-run
forbear dlq redrive --destination acme --canary --rate 50 --wait
forbear dlq discard --why "test data" dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq export --state dead > letters.jsonl
`,
	}
	c.run = func(ctx context.Context, std *streams, args []string) int {
		if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
			f := c.flags()
			newDLQ(f, std)
			if len(args) == 0 {
				return std.fail("dlq: list, show, redrive, discard, export or stats? (see forbear dlq --help)")
			}
			code, _ := c.parse(std, f, []string{"--help"}, 0)
			return code
		}
		f := c.flags()
		q := newDLQ(f, std)
		if code, done := c.parse(std, f, args[1:], 1); done {
			return code
		}
		q.id = f.Arg(0)
		f.Visit(func(fl *flag.Flag) { q.filtered = q.filtered || filterFlags[fl.Name] })
		return q.run(ctx, args[0])
	}
	return c
}

// filterFlags are those that choose letters.
var filterFlags = map[string]bool{"queue": true, "destination": true, "reason": true, "error-type": true, "event-id": true, "state": true, "since": true, "until": true}

// dlq is one run of the command.
type dlq struct {
	std      *streams
	db       *database.DB
	database *string
	id       string
	filtered bool

	filter              deadletter.Filter
	format, who, why    string
	reveal, dryRun, all bool
	wait                bool
	job                 deadletter.Job
}

func newDLQ(f *flag.FlagSet, std *streams) *dlq {
	q := &dlq{std: std, database: databaseFlag(f)}
	f.StringVar(&q.filter.Queue, "queue", "", "letters of this `queue`")
	f.StringVar(&q.filter.Destination, "destination", "", "letters to this destination: a webhook `endpoint`")
	f.StringVar(&q.filter.Reason, "reason", "", "letters with this `reason`, such as exhausted")
	f.StringVar(&q.filter.ErrorType, "error-type", "", "letters with this last error `type`, such as http_503")
	f.StringVar(&q.filter.EventID, "event-id", "", "letters of this message `id`")
	f.Func("state", "letters in this `state`: dead, redriving, resolved or discarded", func(v string) error { q.filter.State = deadletter.State(v); return nil })
	f.Func("since", "letters from this `time` on: RFC 3339, or an age such as 24h", timeFlag(&q.filter.Since))
	f.Func("until", "letters before this `time`", timeFlag(&q.filter.Until))
	f.StringVar(&q.filter.After, "after", "", "list: go on behind the letter with this `id`")
	f.IntVar(&q.filter.Limit, "limit", 100, "list: at most this `many`, up to 1000")
	f.StringVar(&q.format, "o", "text", "output format: `text or json`")
	f.BoolVar(&q.reveal, "reveal", false, "show, export: payloads and credentials too; audited")
	f.StringVar(&q.who, "actor", whoami(), "your `name`, for the audit")
	f.StringVar(&q.why, "why", "", "discard: the `reason`")
	f.BoolVar(&q.all, "all", false, "redrive: all dead letters of the queue")
	f.BoolVar(&q.dryRun, "dry-run", false, "redrive: only count")
	f.BoolVar(&q.job.Canary, "canary", false, "redrive: one letter first")
	f.Float64Var(&q.job.Rate, "rate", deadletter.DefaultRate, "redrive: letters a `second`")
	f.Float64Var(&q.job.StopRatio, "stop-ratio", deadletter.DefaultStopRatio, "redrive: stop when more than this `part` fails")
	f.IntVar(&q.job.MaxRedrives, "max-redrives", deadletter.DefaultMaxRedrives, "redrive: leave letters alone that were redriven this `often`")
	f.BoolVar(&q.wait, "wait", false, "redrive: wait until it is over")
	return q
}

func whoami() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// timeFlag reads a time, or an age.
func timeFlag(t *time.Time) func(string) error {
	return func(v string) (err error) {
		if age, err := time.ParseDuration(v); err == nil {
			*t = time.Now().Add(-age)
			return nil
		}
		*t, err = time.Parse(time.RFC3339, v)
		return err
	}
}

func (q *dlq) run(ctx context.Context, verb string) int {
	do := map[string]func(context.Context) (int, error){
		"list": q.list, "show": q.show, "redrive": q.redrive, "discard": q.discard, "export": q.export, "stats": q.stats,
		"pause": q.set(deadletter.JobPaused), "resume": q.set(deadletter.JobRunning), "cancel": q.set(deadletter.JobCanceled),
	}[verb]
	if do == nil {
		return q.std.fail("dlq: unknown verb %q: want list, show, redrive, discard, export, stats, pause, resume or cancel", verb)
	}
	if q.format != "text" && q.format != "json" {
		return q.std.fail("dlq: unknown format %q: want text or json", q.format)
	}
	var err error
	if q.db, err = database.Open(ctx, *q.database); err != nil {
		return q.std.fail("dlq: %v", err)
	}
	defer func() { _ = q.db.Close() }()
	if _, err := q.db.Migrate(ctx); err != nil {
		return q.std.fail("dlq: %v", err)
	}
	code, err := do(ctx)
	switch {
	case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, deadletter.ErrState), errors.Is(err, deadletter.ErrRedriveLimit):
		fmt.Fprintf(q.std.err, "forbear: dlq: %v\n", err)
		return exitFound
	case err != nil:
		return q.std.fail("dlq: %v", err)
	}
	return code
}

// json writes v when that was asked for.
func (q *dlq) json(v any) bool {
	if q.format != "json" {
		return false
	}
	enc := json.NewEncoder(q.std.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return true
}

func (q *dlq) list(ctx context.Context) (int, error) {
	list, err := q.db.List(ctx, q.filter)
	if err != nil {
		return 0, err
	}
	w := tabwriter.NewWriter(q.std.out, 0, 0, 2, ' ', 0)
	if q.format == "text" {
		fmt.Fprintln(w, "ID\tSTATE\tREASON\tERROR\tDESTINATION\tEVENT\tATTEMPTS\tREDRIVES\tDIED")
	}
	for _, l := range list {
		if !q.json(l.Mask()) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", l.ID, l.State, l.Reason, l.ErrorType, l.Destination, l.EventID, l.Attempts, l.Redrives, l.DeadAt.Format(time.RFC3339))
		}
	}
	if len(list) == 0 {
		return exitFound, nil
	}
	return exitOK, w.Flush()
}

func (q *dlq) stats(ctx context.Context) (int, error) {
	list, err := q.db.Stats(ctx)
	if err != nil || q.json(list) {
		return exitOK, err
	}
	w := tabwriter.NewWriter(q.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "QUEUE\tREASON\tSTATE\tCOUNT\tOLDEST\tNEWEST")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", s.Queue, s.Reason, s.State, s.Count, s.Oldest.Format(time.RFC3339), s.Newest.Format(time.RFC3339))
	}
	return exitOK, w.Flush()
}

// noted writes to the audit before anything is revealed.
func (q *dlq) noted(ctx context.Context, target string) error {
	if !q.reveal {
		return nil
	}
	return q.db.Audit(ctx, deadletter.Entry{Who: q.who, Action: "reveal", Target: target, Detail: "dlq command"})
}

func (q *dlq) show(ctx context.Context) (int, error) {
	if q.id == "" {
		return 0, errors.New("show: which letter? (an id, see forbear dlq list)")
	}
	l, err := q.db.Get(ctx, q.id)
	if err == nil {
		err = q.noted(ctx, l.ID)
	}
	if err != nil {
		return 0, err
	}
	payload := string(l.Payload)
	if !q.reveal {
		l = l.Mask()
		payload = deadletter.Masked + " (--reveal shows it)"
	}
	if q.json(l) {
		return exitOK, nil
	}
	w := q.std.out
	fmt.Fprintf(w, "%s  %s\n  reason       %s (%s)\n  what         %s\n  destination  %s\n  event        %s  type %s\n  key          %s\n  correlation  %s\n  policy       %s\n  redriven     %d times\n",
		l.ID, l.State, l.Reason, l.ErrorType, l.Description, l.Destination, l.EventID, l.Type, l.IdempotencyKey, l.CorrelationID, l.PolicyVersion, l.Redrives)
	fmt.Fprintf(w, "  enqueued     %s\n  died         %s\n", l.EnqueuedAt.Format(time.RFC3339), l.DeadAt.Format(time.RFC3339))
	for _, h := range l.Headers {
		fmt.Fprintf(w, "  header       %s: %s\n", h.Name, h.Value)
	}
	for _, a := range l.History {
		fmt.Fprintf(w, "  attempt %d    %s  took %v  status %d  %s\n", a.Number, a.At.Format(time.RFC3339Nano), a.Took.Round(time.Millisecond), a.Status, a.ErrorType)
	}
	fmt.Fprintf(w, "  payload      %s\n", payload)
	return exitOK, nil
}

func (q *dlq) discard(ctx context.Context) (int, error) {
	if q.id == "" || q.why == "" {
		return 0, errors.New("discard: want an id and --why")
	}
	if err := q.db.Discard(ctx, q.id, q.who, q.why); err != nil {
		return 0, err
	}
	fmt.Fprintf(q.std.out, "%s discarded\n", q.id)
	return exitOK, nil
}

func (q *dlq) export(ctx context.Context) (int, error) {
	if err := q.noted(ctx, "export"); err != nil {
		return 0, err
	}
	q.filter.Limit = deadletter.MaxList
	n := 0
	for {
		list, err := q.db.List(ctx, q.filter)
		if err != nil {
			return 0, err
		}
		if len(list) == 0 {
			break
		}
		for _, l := range list {
			q.filter.After = l.ID
			if !q.reveal {
				l = l.Mask()
			}
			if err := deadletter.Export(q.std.out, l); err != nil {
				return 0, err
			}
			n++
		}
	}
	if n == 0 {
		return exitFound, nil
	}
	return exitOK, nil
}

func (q *dlq) redrive(ctx context.Context) (int, error) {
	if q.id != "" {
		q.filter.IDs = []string{q.id}
	} else if !q.filtered && !q.all {
		return 0, errors.New("redrive: which letters? (an id, a filter flag, or --all)")
	}
	if q.filter.Queue == "" {
		q.filter.Queue = webhook.Queue
	}
	q.filter.Limit = 0
	// The sending is serve's: here the job is only written.
	r := deadletter.NewRedriver(q.db, "", map[string]deadletter.Target{q.filter.Queue: nil}, nil)
	q.job.Filter, q.job.By = q.filter, q.who
	if q.dryRun {
		plan, err := r.Plan(ctx, q.job)
		if err == nil && !q.json(map[string]any{"dry_run": true, "count": plan.Total}) {
			fmt.Fprintf(q.std.out, "%d dead letters would be redriven\n", plan.Total)
		}
		return exitOK, err
	}
	j, err := r.Start(ctx, q.job, webhook.NewID("rdr"))
	if err != nil {
		return 0, err
	}
	if !q.wait {
		if !q.json(j) {
			fmt.Fprintf(q.std.out, "%s: %d dead letters, at %v a second; a running serve sends them\n", j.ID, j.Total, j.Rate)
		}
		return exitOK, nil
	}
	for j.State.Open() {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		if j, err = q.db.Job(ctx, j.ID); err != nil {
			return 0, err
		}
	}
	if !q.json(j) {
		fmt.Fprintf(q.std.out, "%s %s: %d of %d sent, %d delivered, %d failing %s\n", j.ID, j.State, j.Begun, j.Total, j.Delivered, j.Failing, j.Why)
	}
	if j.State != deadletter.JobDone {
		return exitFound, nil
	}
	return exitOK, nil
}

// set pauses, resumes or cancels a redrive.
func (q *dlq) set(state deadletter.JobState) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		if q.id == "" {
			return 0, errors.New("which redrive? (the id that redrive printed)")
		}
		if err := q.db.SetJobState(ctx, q.id, state, q.who); err != nil {
			return 0, err
		}
		fmt.Fprintf(q.std.out, "%s %s\n", q.id, state)
		return exitOK, nil
	}
}
