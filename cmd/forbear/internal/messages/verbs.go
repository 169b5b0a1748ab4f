package messages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// pageSize is how many messages are read, or changed, at once.
const pageSize = webhook.MaxAct

// pages calls f for each page of the messages that are chosen, until f has enough.
func (r *run) pages(ctx context.Context, size int, f func(page webhook.MessagePage) (more bool, err error)) error {
	for before := r.after; ; {
		page, err := r.store.Messages(ctx, r.filter, before, size)
		if err != nil {
			return err
		}
		more, err := f(page)
		if err != nil || !more || page.Next == 0 {
			return err
		}
		before = page.Next
	}
}

// nothing says that there is none.
func (r *run) nothing() (int, error) {
	fmt.Fprintln(r.std.Err, "messages: no such messages")
	return cli.ExitFound, nil
}

// list writes one line for each message. What came from senders passes
// cli.Printable, so that none of it can steer the operator's terminal.
func (r *run) list(ctx context.Context) (int, error) {
	w := tabwriter.NewWriter(r.std.Out, 0, 0, 2, ' ', 0)
	left, next, unreadable := r.limit, int64(0), 0
	err := r.pages(ctx, min(r.limit, pageSize), func(page webhook.MessagePage) (bool, error) {
		unreadable += page.Unreadable
		for _, m := range page.Messages[:min(left, len(page.Messages))] {
			if left == r.limit && r.format == "text" {
				fmt.Fprintln(w, "ID\tENDPOINT\tSTATE\tTYPE\tKEY\tATTEMPTS\tERROR\tACCEPTED")
			}
			left--
			if r.format == "json" {
				if err := json.NewEncoder(r.std.Out).Encode(m); err != nil {
					return false, err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", cli.Printable(m.ID), cli.Printable(m.Endpoint), m.State, cli.Printable(m.Type), cli.Printable(m.Key), m.Attempts, cli.Printable(cmp.Or(m.ErrorType, m.Error)), m.Created.Format(time.RFC3339))
			next = m.Number
		}
		return left > 0, w.Flush()
	})
	if unreadable > 0 {
		fmt.Fprintf(r.std.Err, "forbear: messages: %s\n", passedOver(unreadable))
	}
	switch {
	case err != nil:
		return 0, err
	case left == r.limit:
		return r.nothing()
	case left == 0 && r.format == "text":
		fmt.Fprintf(r.std.Err, "forbear: messages: there may be more: --after %d\n", next)
	}
	return cli.ExitOK, nil
}

// passedOver says how many messages a filter could not be compared with.
func passedOver(n int) string {
	return fmt.Sprintf("%d passed over: their type and key cannot be read with the keys that are given", n)
}

// show writes a message at each of its endpoints, with its attempts.
func (r *run) show(ctx context.Context) (int, error) {
	list, err := r.store.Deliveries(ctx, r.filter.ID)
	if err != nil {
		return 0, err
	}
	if len(r.filter.Endpoints) > 0 {
		list = slices.DeleteFunc(list, func(d webhook.DeliveryInfo) bool { return !slices.Contains(r.filter.Endpoints, d.Endpoint) })
	}
	if len(list) == 0 {
		return r.nothing()
	}
	if r.reveal { // recorded before anything is shown
		if err := r.db.DeadLetters().Audit(ctx, deadletter.Entry{Who: r.who, Action: "reveal", Target: "message " + r.filter.ID}); err != nil {
			return 0, err
		}
	}
	if err := r.contents(ctx); err != nil {
		return 0, err
	}
	for _, d := range list {
		for i := range d.History {
			if !r.reveal {
				d.History[i].Response = ""
			}
		}
		if r.format == "json" {
			if err := json.NewEncoder(r.std.Out).Encode(d); err != nil {
				return 0, err
			}
			continue
		}
		due := ""
		if !d.Due.IsZero() {
			due = ", due " + d.Due.Format(time.RFC3339)
		}
		fmt.Fprintf(r.std.Out, "%s at %s: %s%s\n", cli.Printable(d.Message), cli.Printable(d.Endpoint), d.State, due)
		for _, a := range d.History {
			fmt.Fprintf(r.std.Out, "  attempt %d  %s  took %s  %d %s\n", a.Number, a.At.Format(time.RFC3339), a.Took.Round(time.Millisecond), a.Status, cli.Printable(cmp.Or(a.ErrorType, "delivered")))
			if a.Response != "" {
				fmt.Fprintf(r.std.Out, "    %s\n", cli.Printable(a.Response))
			}
		}
	}
	return cli.ExitOK, nil
}

// act is what can be done to messages in some states.
type act struct {
	do     func(s *sqlstore.Webhooks, ctx context.Context, page webhook.MessagePage, by string) ([]webhook.MessageResult, error)
	states []string
	did    string
}

// acts are the verbs that change messages.
var acts = map[string]act{
	"cancel": {func(s *sqlstore.Webhooks, ctx context.Context, page webhook.MessagePage, by string) ([]webhook.MessageResult, error) {
		return s.Cancel(ctx, page.Numbers(), by)
	}, []string{webhook.StateWaiting, webhook.StateHeld, webhook.StateSending}, "canceled"},
	"send-again": {func(s *sqlstore.Webhooks, ctx context.Context, page webhook.MessagePage, by string) ([]webhook.MessageResult, error) {
		return s.SendAgain(ctx, page.Numbers(), deadletter.DefaultMaxRedrives, by)
	}, []string{webhook.StateDelivered, webhook.StateDead, webhook.StateCanceled}, "sent again"},
	"erase": {func(s *sqlstore.Webhooks, ctx context.Context, page webhook.MessagePage, by string) ([]webhook.MessageResult, error) {
		return s.EraseAll(ctx, page.Messages, by)
	}, states, "erased"},
}

// act does it to all that are chosen, batch by batch, and says how many there were.
func (r *run) act(ctx context.Context, verb string) (int, error) {
	a := acts[verb]
	if len(r.filter.States) == 0 && r.filter.ID == "" { // one that is named learns why not
		r.filter.States = a.states
	}
	done, unreadable, refused := 0, 0, map[string]int{}
	err := r.pages(ctx, pageSize, func(page webhook.MessagePage) (bool, error) {
		unreadable += page.Unreadable
		if r.dryRun || len(page.Messages) == 0 {
			done += page.Kept()
			return true, nil
		}
		results, err := a.do(r.store, ctx, page, r.who)
		for _, m := range results {
			if m.Done {
				done++
			} else {
				refused[m.Why]++
			}
		}
		return true, err
	})
	if err != nil {
		return 0, err
	}
	if r.dryRun {
		a.did = "would be " + a.did
	}
	fmt.Fprintf(r.std.Out, "%d %s\n", done, a.did)
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(r.std.Out, "%d left: %s\n", refused[why], why)
	}
	if unreadable > 0 {
		fmt.Fprintln(r.std.Out, passedOver(unreadable))
	}
	if done == 0 {
		return cli.ExitFound, nil
	}
	return cli.ExitOK, nil
}
