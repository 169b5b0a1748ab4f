package messages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook/store"
)

// act is what can be done to messages in some states.
type act struct {
	name, did string
	states    []string
	do        func(ctx context.Context, s *sqlstore.Webhooks, page store.MessagePage, by string) ([]store.MessageResult, error)
}

// acts are the verbs that change messages.
var acts = []act{
	{"cancel", "canceled", []string{store.StateWaiting, store.StateHeld, store.StateSending}, func(ctx context.Context, s *sqlstore.Webhooks, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.Cancel(ctx, page.Numbers(), by)
	}},
	{"send-again", "sent again", []string{store.StateDelivered, store.StateDead, store.StateCanceled}, func(ctx context.Context, s *sqlstore.Webhooks, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.SendAgain(ctx, page.Numbers(), queue.DefaultMaxRedrives, by)
	}},
	{"erase", "erased", states, func(ctx context.Context, s *sqlstore.Webhooks, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.EraseAll(ctx, page.Messages, by)
	}},
}

// act does it to all that are chosen, batch by batch, and says how many there were.
func (m *messages) act(a act) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(m.filter.States) == 0 && m.ID == "" { // one that is named learns why not
			m.filter.States = a.states
		}
		done, unreadable, refused := 0, 0, map[string]int{}
		err := m.pages(ctx, pageSize, func(page store.MessagePage) (bool, error) {
			unreadable += page.Unreadable
			if m.dryRun || len(page.Messages) == 0 {
				done += page.Kept()
				return true, nil
			}
			results, err := a.do(ctx, m.db.Webhooks(), page, m.Actor)
			for _, result := range results {
				if result.Done {
					done++
				} else {
					refused[result.Why]++
				}
			}
			return true, err
		})
		if err != nil {
			return err
		}
		did := a.did
		if m.dryRun {
			did = "would be " + did
		}
		fmt.Fprintf(m.Out, "%d %s\n", done, did)
		for _, why := range slices.Sorted(maps.Keys(refused)) {
			fmt.Fprintf(m.Out, "%d not changed: %s\n", refused[why], why)
		}
		if unreadable > 0 {
			fmt.Fprintln(m.Out, passedOver(unreadable))
		}
		if done == 0 {
			return verb.ErrNegative
		}
		return nil
	}
}

// erase removes what is kept of a message, or of those that are chosen, when that is
// meant.
func (m *messages) erase(a act) func(context.Context) error {
	return func(ctx context.Context) error {
		what := m.ID + " at all endpoints"
		switch {
		case m.ID == "":
			what = "all chosen messages (--dry-run counts them)"
		case len(m.filter.Endpoints) > 0:
			what = m.ID + " at " + strings.Join(m.filter.Endpoints, ", ")
		}
		if err := m.Confirm(m.yes || m.dryRun, "Erase what is kept of "+what+"?", "erased"); err != nil {
			return err
		}
		others := m.filter
		others.ID, others.Endpoints = "", nil
		if m.ID == "" || !others.IsZero() || m.dryRun {
			return m.act(a)(ctx)
		}
		n, err := m.db.Webhooks().Erase(ctx, m.ID, m.filter.Endpoints, m.Actor)
		switch {
		case err != nil:
			return err
		case n == 0:
			return errNone
		}
		fmt.Fprintf(m.Out, "%s is erased\n", verb.Cell(m.ID))
		return nil
	}
}
