// Package messages is the command messages: what an operator does with messages that
// forbear has accepted. It works on the database itself, as dlq does, and leaves
// the sending to a running serve.
package messages

import (
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/webhook/store"
)

// Command returns the command messages.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "messages",
		Summary: "list, show, cancel, erase and send messages again",
		Usage:   "list | show ID | cancel [ID] | send-again [ID] | erase [ID] [FLAGS]",
		About: `
Messages works on serve's database, whether serve is running or not. A message has a
state at each of its endpoints, and a line for each of them in a list.

  list                     list messages, the newest first
  show ID                  show a message at each endpoint, with its attempts
  cancel ID | FILTER       cancel queued messages, and those that are being sent,
                           unless the current attempt delivers them
  send-again ID | FILTER   send delivered, canceled or dead messages again, with
                           their id; a dead letter three times at most
  erase ID | FILTER        erase requests and responses permanently, in dead letters
                           too; a message that is being sent cannot be erased

Payloads, header values and responses are masked. --reveal shows them; the audit trail
records your name first. Cancel, send-again and erase need an id, a filter flag or
--all; --dry-run only counts.

Exit code 1: nothing was found, or nothing could be changed.`,
		Examples: `
forbear messages list --endpoint acme --state waiting --state held
forbear messages show --reveal order-4711
forbear messages erase --application acme --dry-run
forbear messages cancel --endpoint acme order-4711
forbear messages send-again --endpoint acme --state dead --since 2h --dry-run
`,
	}, setup)
}

// messages is one run of the command.
type messages struct {
	*verb.Run
	db *verb.Database

	filter store.MessageFilter
	after  int64
	limit  int
	reveal bool
	all    bool
	dryRun bool
	yes    bool
}

// states are those that a filter can name.
var states = []string{store.StateWaiting, store.StateHeld, store.StateSending, store.StateCanceling, store.StateDelivered, store.StateDead, store.StateCanceled}

// maxLimit bounds a list.
const maxLimit = 100_000

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	m := &messages{Run: r}
	m.db = r.Database(f)
	f.Func("endpoint", "only to this `endpoint`; may be repeated", add(&m.filter.Endpoints, nil))
	f.StringVar(&m.filter.Application, "application", "", "only to endpoints of this `application`")
	f.StringVar(&m.filter.Type, "type", "", "only of this `type`")
	f.StringVar(&m.filter.Key, "key", "", "only with this `key`")
	f.Func("state", "only in this `state`: waiting, held, sending, canceling, delivered, dead or canceled; may be repeated", add(&m.filter.States, states))
	f.Func("since", "accepted from this `time` on: RFC 3339, or an age such as 24h", cli.TimeFlag(&m.filter.Since))
	f.Func("until", "accepted before this `time`", cli.TimeFlag(&m.filter.Until))
	f.Int64Var(&m.after, "after", 0, "list: continue after this `number`, as a page printed it")
	f.IntVar(&m.limit, "limit", 100, "list: at most this `number`, up to 100000")
	m.FormatFlag(f, "list, show: output format: `text or json`")
	f.BoolVar(&m.reveal, "reveal", false, "show: with payloads, header values and responses; audited")
	f.BoolVar(&m.yes, "yes", false, "erase: do not ask")
	f.BoolVar(&m.all, "all", false, "cancel, send-again, erase: all messages that can be")
	f.BoolVar(&m.dryRun, "dry-run", false, "cancel, send-again, erase: only count")
	m.ActorFlag(f, "your `name`, for the audit")

	const id = "the id of a message"
	verbs := []verb.Verb{
		{Name: "list", Check: m.check, Do: m.list},
		{Name: "show", Operand: id, Check: m.check, Do: m.show},
	}
	for _, a := range acts {
		do := m.act(a)
		if a.name == "erase" {
			do = m.erase(a)
		}
		verbs = append(verbs, verb.Verb{Name: a.name, Operand: id, Optional: true, Check: m.checkAct(a), Do: do})
	}
	return verbs
}

// add adds a value to a list; without known values any is taken.
func add(list *[]string, known []string) func(string) error {
	return func(v string) error {
		if known != nil && !slices.Contains(known, v) {
			return fmt.Errorf("want one of %q", known)
		}
		*list = append(*list, v)
		return nil
	}
}

func (m *messages) check() error {
	m.filter.ID = m.ID
	if m.limit < 1 || m.limit > maxLimit {
		return fmt.Errorf("--limit %d is outside 1 to %d", m.limit, maxLimit)
	}
	return nil
}

// checkAct refuses to act on all messages because a flag was forgotten, and on those in
// a state in which it cannot be done.
func (m *messages) checkAct(a act) func() error {
	return func() error {
		if m.ID == "" && !m.all && !m.Given("endpoint", "application", "type", "key", "state", "since", "until") {
			return errors.New(a.name + " needs an id, a filter flag or --all")
		}
		for _, state := range m.filter.States {
			if !slices.Contains(a.states, state) {
				return fmt.Errorf("%s: not for messages in state %s: want %q", a.name, state, a.states)
			}
		}
		return m.check()
	}
}
