package dlq

import (
	"errors"
	"flag"
	"slices"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
)

// filterFlags are those that choose letters. Redrive and discard demand one of
// them, an id, or --all: all letters must be asked for, and not be meant because a
// flag was forgotten.
var filterFlags = map[string]bool{"queue": true, "destination": true, "reason": true, "error-type": true, "event-id": true, "cause": true, "state": true, "since": true, "until": true}

// register registers the flags of all verbs in one set, so that flags may
// stand before the verb too. The environment can provide what is the same in
// every call: database, key file and name.
func (q *dlq) register(f *flag.FlagSet) {
	database.Flag(f, &q.database, database.Usage)
	database.KeyFlag(f, &q.keys, "the `file` with the key that serve encrypts payloads under")
	f.StringVar(&q.filter.Queue, "queue", "", "letters of this `queue`")
	f.StringVar(&q.filter.Application, "application", "", "letters of this `application`'s endpoints, or redrives of them")
	f.StringVar(&q.filter.Destination, "destination", "", "letters to this destination: a webhook `endpoint`")
	f.StringVar(&q.filter.Reason, "reason", "", "letters with this `reason`, such as exhausted")
	f.StringVar(&q.filter.ErrorType, "error-type", "", "letters with this last error `type`, such as http_503")
	f.StringVar(&q.filter.EventID, "event-id", "", "letters of this message `id`")
	f.StringVar(&q.filter.Cause, "cause", "", "letters with this `cause`, as stats names it")
	f.Func("state", "letters in this `state`: dead, redriving, resolved or discarded", stateFlag(&q.filter.State))
	f.Func("since", "letters, or lines of the audit trail, from this `time` on: RFC 3339, or an age such as 24h", cli.TimeFlag(&q.filter.Since))
	f.Func("until", "letters, or lines of the audit trail, before this `time`", cli.TimeFlag(&q.filter.Until))
	f.StringVar(&q.filter.After, "after", "", "list, redrives: go on behind the one with this `id`")
	f.IntVar(&q.filter.Limit, "limit", 100, "list, redrives: at most this `many`, up to 1000")
	f.StringVar(&q.format, "o", "text", "output `format`: text or json")
	f.BoolVar(&q.reveal, "reveal", false, "show, export, read: payloads and credentials too; audited")
	// The name is not verified: access to the database is what authorizes,
	// and the name says who it was.
	cli.ActorFlag(f, &q.who, "your `name`, for the audit")
	f.StringVar(&q.why, "why", "", "discard: the `reason`")
	f.BoolVar(&q.all, "all", false, "redrive, discard: all dead letters of the queue")
	f.BoolVar(&q.dryRun, "dry-run", false, "redrive, discard: only count")
	f.BoolVar(&q.job.Canary, "canary", false, "redrive: one letter first")
	f.Float64Var(&q.job.Rate, "rate", deadletter.DefaultRate, "redrive: `letters` a second")
	// A redrive into a dependency that is still broken stops by itself,
	// before it has used up the letters' redrives.
	f.Float64Var(&q.job.StopRatio, "stop-ratio", deadletter.DefaultStopRatio, "redrive: stop when more than this `part` fails; 1 never stops")
	f.IntVar(&q.job.MaxRedrives, "max-redrives", deadletter.DefaultMaxRedrives, "redrive: leave letters alone that were redriven this `often`")
	f.BoolVar(&q.wait, "wait", false, "redrive: wait until it is over")
}

// stateFlag reads the state of a letter. A misspelt one must not list an
// empty queue.
func stateFlag(s *deadletter.State) func(string) error {
	return func(v string) error {
		*s = deadletter.State(v)
		if !slices.Contains([]deadletter.State{deadletter.Dead, deadletter.Redriving, deadletter.Resolved, deadletter.Discarded}, *s) {
			return errors.New("want dead, redriving, resolved or discarded")
		}
		return nil
	}
}
