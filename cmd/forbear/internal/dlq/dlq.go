// Package dlq is the command dlq: what an operator does with dead letters. It
// works on the database itself and not through serve's API, so that letters can
// be looked at while no process serves. Only the sending of a redrive is left to
// a running serve, which paces it and counts its outcomes.
package dlq

import (
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// Command returns the command dlq.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "dlq",
		Summary: "list, show, redrive, discard, export and count dead letters",
		Usage: "stats | list | show ID | redrive [ID] | redrives | pause ID | resume ID | cancel ID" +
			" | discard [ID] | export | read FILE | audit [FLAGS]",
		About: `
Dlq works on serve's database, whether serve is running or not.

  stats                     count letters by queue, reason and state, and by cause
  list                      list letters, the oldest first
  show ID                   show a letter with its history
  redrive ID | FILTER       send letters again, with their id and key
  redrives                  list redrives and their progress
  pause, resume, cancel ID  control a redrive
  discard ID | FILTER --why REASON
                            give up letters; they stay listed until they expire
  export                    print letters as JSON lines
  read FILE                 print an export that serve wrote and encrypted
  audit                     list reveals, redrives and discards, with names

Payloads, credentials and the quoted parts of errors are masked. --reveal shows
them; the audit trail records your name first.

Letters share a cause when one fix would deliver them all: same destination, error
type and error text, apart from numbers and quoted parts.

A running serve sends the letters of a redrive, at --rate, and stops when more than
--stop-ratio of them fail. Redrive and discard need an id, a filter flag or --all.

Exit code 1: nothing was found, or a redrive stopped.`,
		Examples: `
forbear dlq stats
forbear dlq list --reason exhausted --since 24h
forbear dlq show --reveal dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq redrive --destination acme --dry-run
forbear dlq redrive --destination acme --canary --rate 50 --wait
forbear dlq discard --why "test data" dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq export --state dead --reveal > letters.jsonl
`,
	}, setup)
}

// dlq is one run of the command.
type dlq struct {
	*verb.Run
	db *verb.Database

	filter queue.Filter
	why    string // of a discard
	reveal bool   // payloads and credentials too

	// Of a redrive.
	job    queue.Job // its rate and its limits
	all    bool      // every letter, without a filter
	dryRun bool      // only count
	wait   bool      // until it is over
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	q := &dlq{Run: r}
	q.register(f)
	const letter, redrive = "the id of a letter", "the id of a redrive"
	return []verb.Verb{
		{Name: "stats", Check: q.check, Do: q.stats},
		{Name: "list", Check: q.check, Do: q.list},
		{Name: "show", Operand: letter, Check: q.check, Do: q.show},
		{Name: "redrive", Operand: letter, Optional: true, Check: q.checkChosen, Do: q.redrive},
		{Name: "redrives", Check: q.check, Do: q.redrives},
		{Name: "pause", Operand: redrive, Do: q.setJob(queue.JobPaused)},
		{Name: "resume", Operand: redrive, Do: q.setJob(queue.JobRunning)},
		{Name: "cancel", Operand: redrive, Do: q.setJob(queue.JobCanceled)},
		{Name: "discard", Operand: letter, Optional: true, Check: q.checkDiscard, Do: q.discard},
		{Name: "export", Do: q.export},
		{Name: "read", Operand: "the file of an export", Do: q.read},
		{Name: "audit", Check: q.check, Do: q.audit},
	}
}

// register registers the flags of all verbs.
func (q *dlq) register(f *flag.FlagSet) {
	q.db = q.Database(f)
	f.StringVar(&q.filter.Queue, "queue", "", "only this `queue`")
	f.StringVar(&q.filter.Application, "application", "", "only this `application`'s endpoints")
	f.StringVar(&q.filter.Destination, "destination", "", "only to this `endpoint`")
	f.StringVar(&q.filter.Reason, "reason", "", "only with this `reason`, such as exhausted")
	f.StringVar(&q.filter.ErrorType, "error-type", "", "only with this last error `type`, such as http_503")
	f.StringVar(&q.filter.EventID, "event-id", "", "only of this message `id`")
	f.StringVar(&q.filter.Cause, "cause", "", "only with this `cause`, as stats shows it")
	f.Func("state", "only in this `state`: dead, redriving, resolved or discarded", stateFlag(&q.filter.State))
	f.Func("since", "from this `time` on: RFC 3339, or an age such as 24h", cli.TimeFlag(&q.filter.Since))
	f.Func("until", "before this `time`", cli.TimeFlag(&q.filter.Until))
	f.StringVar(&q.filter.After, "after", "", "list, redrives: continue after this `id`")
	f.IntVar(&q.filter.Limit, "limit", 100, "list, redrives: at most this `number`, up to 1000")
	q.FormatFlag(f, "output `format`: text or json")
	f.BoolVar(&q.reveal, "reveal", false, "show, export, read: with payloads and credentials; audited")
	q.ActorFlag(f, "your `name`, for the audit")
	f.StringVar(&q.why, "why", "", "discard: the `reason`")
	f.BoolVar(&q.all, "all", false, "redrive, discard: all dead letters")
	f.BoolVar(&q.dryRun, "dry-run", false, "redrive, discard: only count")
	f.BoolVar(&q.job.Canary, "canary", false, "redrive: send one letter first, the others when it is delivered")
	f.Float64Var(&q.job.Rate, "rate", queue.DefaultRate, "redrive: letters a second, a `number`")
	// A redrive into a dependency that is still broken stops by itself,
	// before it has used up the letters' redrives.
	f.Float64Var(&q.job.StopRatio, "stop-ratio", queue.DefaultStopRatio, "redrive: stop when more than this `share` fails; 1 never stops")
	f.IntVar(&q.job.MaxRedrives, "max-redrives", queue.DefaultMaxRedrives, "redrive: skip letters that were redriven this `number` of times")
	f.BoolVar(&q.wait, "wait", false, "redrive: wait until it ends")
}

// states are those of a letter.
var states = []deadletter.State{deadletter.Dead, deadletter.Redriving, deadletter.Resolved, deadletter.Discarded}

// stateFlag reads the state of a letter. A misspelt one must not list an empty queue.
func stateFlag(s *deadletter.State) func(string) error {
	return func(v string) error {
		if *s = deadletter.State(v); !slices.Contains(states, *s) {
			return errors.New("want dead, redriving, resolved or discarded")
		}
		return nil
	}
}

func (q *dlq) check() error {
	if q.filter.Limit < 1 || q.filter.Limit > queue.MaxList {
		return fmt.Errorf("--limit %d is outside 1 to %d", q.filter.Limit, queue.MaxList)
	}
	return nil
}

// checkChosen demands an id, a flag that chooses letters, or --all: all letters must be
// asked for, and not be meant because a flag was forgotten.
func (q *dlq) checkChosen() error {
	if q.ID == "" && !q.all && !q.filtered() {
		return errors.New("which letters? give an id, a filter flag, or --all")
	}
	return q.check()
}

func (q *dlq) filtered() bool {
	return q.Given("queue", "destination", "reason", "error-type", "event-id", "cause", "state", "since", "until")
}

// checkDiscard demands a reason: months later the audit trail is all that says why an
// event was never delivered.
func (q *dlq) checkDiscard() error {
	switch {
	case q.why == "" && !q.dryRun:
		return errors.New("discard needs --why REASON")
	case q.ID != "" && (q.filtered() || q.all || q.dryRun):
		return errors.New("discard: give an id or a filter, not both")
	}
	return q.checkChosen()
}

// deadLetters is a count with its noun.
func deadLetters(n int) string {
	if n == 1 {
		return "1 dead letter"
	}
	return fmt.Sprint(n, " dead letters")
}
