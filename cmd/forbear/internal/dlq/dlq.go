package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
)

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "dlq",
		Summary: "list, show, redrive, discard, export and count dead letters",
		Usage:   "VERB [FLAGS] [ID]",
		About: `
Dlq works on the database that serve works on: an SQLite file beside it, or the
same PostgreSQL from anywhere.

  stats                     count letters by queue, reason and state
  list                      one line for each letter, the oldest first
  show ID                   one letter with its history
  redrive ID | FILTER       send letters on their way again, with their id and key
  redrives                  the redrives and how far they are
  pause, resume, cancel ID  a redrive
  discard ID --why REASON   give a letter up; it stays listed until it expires
  export                    letters as lines of JSON
  read FILE                 print an export that serve has written and encrypted
  audit                     who revealed, redrove and discarded what

Lists and exports mask payloads and credentials; --reveal shows them, and is
written to the audit trail with your name first.

Redrive sends the letters that the filter chooses: --dry-run only counts them;
--canary sends one, and the others when it was delivered. A running serve does
the sending, at --rate a second, and stops when more than --stop-ratio of the
outcomes are failures. Without a filter flag, an id, or --all it refuses.

Exit code 1 means that nothing was found, or that a redrive was stopped.`,
		Examples: `
forbear dlq stats
forbear dlq list --reason exhausted --since 24h
forbear dlq show --reveal dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq redrive --destination acme --dry-run
forbear dlq redrive --destination acme --canary --rate 50 --wait
forbear dlq discard --why "test data" dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq export --state dead > letters.jsonl
forbear dlq read --encryption-key-file key dead-letters-2026-03-01.jsonl
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		q := newDLQ(f, std)
		if len(args) == 0 {
			return std.Fail("dlq: what shall be done? want %s (see forbear dlq --help)", verbNames())
		}
		verb := args[0]
		if strings.HasPrefix(verb, "-") { // --help, or flags before the verb
			verb = ""
		} else {
			args = args[1:]
		}
		for { // flags may stand behind an operand
			if code, done := c.Parse(std, f, args, len(args)); done {
				return code
			}
			if f.NArg() == 0 {
				break
			}
			q.operands = append(q.operands, f.Arg(0))
			args = f.Args()[1:]
		}
		f.Visit(func(fl *flag.Flag) { q.filtered = q.filtered || filterFlags[fl.Name] })
		return q.run(ctx, verb)
	}
	return c
}

// filterFlags are those that choose letters.
var filterFlags = map[string]bool{"queue": true, "destination": true, "reason": true, "error-type": true, "event-id": true, "state": true, "since": true, "until": true}

// dlq is one run of the command.
type dlq struct {
	std      *cli.Streams
	db       *database.DB
	database *string
	keyFile  string
	operands []string
	id       string
	filtered bool

	filter              deadletter.Filter
	format, who, why    string
	reveal, dryRun, all bool
	wait                bool
	job                 deadletter.Job
}

func newDLQ(f *flag.FlagSet, std *cli.Streams) *dlq {
	q := &dlq{std: std, database: database.Flag(f)}
	f.StringVar(&q.keyFile, "encryption-key-file", os.Getenv("FORBEAR_ENCRYPTION_KEY_FILE"), "the `file` with the key that serve encrypts payloads under (also from FORBEAR_ENCRYPTION_KEY_FILE)")
	f.StringVar(&q.filter.Queue, "queue", "", "letters of this `queue`")
	f.StringVar(&q.filter.Destination, "destination", "", "letters to this destination: a webhook `endpoint`")
	f.StringVar(&q.filter.Reason, "reason", "", "letters with this `reason`, such as exhausted")
	f.StringVar(&q.filter.ErrorType, "error-type", "", "letters with this last error `type`, such as http_503")
	f.StringVar(&q.filter.EventID, "event-id", "", "letters of this message `id`")
	f.Func("state", "letters in this `state`: dead, redriving, resolved or discarded", stateFlag(&q.filter.State))
	f.Func("since", "letters from this `time` on: RFC 3339, or an age such as 24h", timeFlag(&q.filter.Since))
	f.Func("until", "letters before this `time`", timeFlag(&q.filter.Until))
	f.StringVar(&q.filter.After, "after", "", "list: go on behind the letter with this `id`")
	f.IntVar(&q.filter.Limit, "limit", 100, "list: at most this `many`, up to 1000")
	f.StringVar(&q.format, "o", "text", "output `format`: text or json")
	f.BoolVar(&q.reveal, "reveal", false, "show, export, read: payloads and credentials too; audited")
	f.StringVar(&q.who, "actor", cli.Actor(), "your `name`, for the audit")
	f.StringVar(&q.why, "why", "", "discard: the `reason`")
	f.BoolVar(&q.all, "all", false, "redrive: all dead letters of the queue")
	f.BoolVar(&q.dryRun, "dry-run", false, "redrive: only count")
	f.BoolVar(&q.job.Canary, "canary", false, "redrive: one letter first")
	f.Float64Var(&q.job.Rate, "rate", deadletter.DefaultRate, "redrive: `letters` a second")
	f.Float64Var(&q.job.StopRatio, "stop-ratio", deadletter.DefaultStopRatio, "redrive: stop when more than this `part` fails; 1 never stops")
	f.IntVar(&q.job.MaxRedrives, "max-redrives", deadletter.DefaultMaxRedrives, "redrive: leave letters alone that were redriven this `often`")
	f.BoolVar(&q.wait, "wait", false, "redrive: wait until it is over")
	return q
}

// timeFlag reads a time, or an age.
func timeFlag(t *time.Time) func(string) error {
	return func(v string) error {
		if age, err := time.ParseDuration(v); err == nil {
			*t = time.Now().Add(-age)
			return nil
		}
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return errors.New("want an RFC 3339 time such as 2026-03-01T12:00:00Z, or an age such as 24h")
		}
		*t = at
		return nil
	}
}

func stateFlag(s *deadletter.State) func(string) error {
	return func(v string) error {
		*s = deadletter.State(v)
		if !slices.Contains([]deadletter.State{deadletter.Dead, deadletter.Redriving, deadletter.Resolved, deadletter.Discarded}, *s) {
			return errors.New("want dead, redriving, resolved or discarded")
		}
		return nil
	}
}

// verb is one thing that dlq does.
type verb struct {
	operand string // what its operand is; "" takes none
	needed  bool
	do      func(*dlq, context.Context) (int, error)
}

var verbs = map[string]verb{
	"stats":    {"", false, (*dlq).stats},
	"list":     {"", false, (*dlq).list},
	"show":     {"the id of a letter", true, (*dlq).show},
	"discard":  {"the id of a letter", true, (*dlq).discard},
	"export":   {"", false, (*dlq).export},
	"read":     {"the file of an export", true, nil},
	"audit":    {"", false, (*dlq).audits},
	"redrive":  {"the id of a letter", false, (*dlq).redrive},
	"redrives": {"", false, (*dlq).redrives},
	"pause":    {"the id of a redrive", true, setJob(deadletter.JobPaused)},
	"resume":   {"the id of a redrive", true, setJob(deadletter.JobRunning)},
	"cancel":   {"the id of a redrive", true, setJob(deadletter.JobCanceled)},
}

func verbNames() string { return strings.Join(slices.Sorted(maps.Keys(verbs)), ", ") }

func (q *dlq) run(ctx context.Context, name string) int {
	v, known := verbs[name]
	switch {
	case !known:
		return q.std.Fail("dlq: unknown verb %q: want %s", name, verbNames())
	case q.format != "text" && q.format != "json":
		return q.std.Fail("dlq: unknown format %q: want text or json", q.format)
	case q.filter.Limit < 1 || q.filter.Limit > deadletter.MaxList:
		return q.std.Fail("dlq: --limit %d is not 1 to %d", q.filter.Limit, deadletter.MaxList)
	case v.needed && len(q.operands) == 0:
		return q.std.Fail("dlq: %s wants %s", name, v.operand)
	case v.operand == "" && len(q.operands) > 0, len(q.operands) > 1:
		return q.std.Fail("dlq: %s: unexpected argument %q", name, q.operands[len(q.operands)-1])
	}
	if len(q.operands) > 0 {
		q.id = q.operands[0]
	}
	opts, cipher, err := q.ciphers()
	if err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	if name == "read" {
		v.do = func(q *dlq, ctx context.Context) (int, error) { return q.read(ctx, cipher) }
	}
	if err := exists(*q.database); err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	if q.db, err = database.Open(ctx, *q.database, opts...); err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	defer func() { _ = q.db.Close() }()
	if err := q.upToDate(ctx); err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	code, err := v.do(q, ctx)
	switch {
	case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, deadletter.ErrState), errors.Is(err, deadletter.ErrRedriveLimit):
		fmt.Fprintf(q.std.Err, "forbear: dlq: %v\n", err)
		return cli.ExitFound
	case err != nil:
		return q.std.Fail("dlq: %v", err)
	}
	return code
}

// upToDate refuses a database of an earlier version: processes of that version
// may be at work on it, and could not go on with another schema.
func (q *dlq) upToDate(ctx context.Context) error {
	steps, err := q.db.Pending(ctx)
	switch {
	case err != nil:
		return err
	case len(steps) > 0:
		return fmt.Errorf("the database is of an earlier version and lacks %s: run forbear migrate when no process of that version works on it", strings.Join(steps, ", "))
	}
	_, err = q.db.Migrate(ctx) // of an empty one
	return err
}

// exists refuses an SQLite file that is not there: opening it would make one,
// empty, and tell nobody that its name was misspelt.
func exists(name string) error {
	if strings.Contains(name, "://") {
		return nil
	}
	path, _, _ := strings.Cut(name, "?")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database %s: name serve's with --database", path)
	}
	return nil
}

// ciphers returns what the key file says.
func (q *dlq) ciphers() ([]sqlstore.Option, deadletter.Cipher, error) {
	keys, err := database.ReadKeys(q.keyFile)
	if err != nil || len(keys) == 0 {
		return nil, nil, err
	}
	c, err := sqlstore.NewCipher(keys...)
	return []sqlstore.Option{sqlstore.WithCipher(c)}, c, err
}

// json writes v when that was asked for.
func (q *dlq) json(v any) bool {
	if q.format != "json" {
		return false
	}
	enc := json.NewEncoder(q.std.Out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return true
}

// nothing says that nothing was found.
func (q *dlq) nothing(what string) (int, error) {
	fmt.Fprintf(q.std.Err, "forbear: dlq: %s\n", what)
	return cli.ExitFound, nil
}
