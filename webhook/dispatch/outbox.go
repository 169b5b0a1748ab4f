package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// While rows come, the outbox is looked at ten times as often as otherwise: an
// application that sends one message often sends the next.
const (
	relayBusy    = 5 * time.Second // after the last row
	relayQuicker = 10
	stuckEvery   = time.Minute // how often the log says that rows stay
)

// watchOutbox relays until ctx ends.
func (d *Dispatcher) watchOutbox(ctx context.Context) {
	var last time.Time
	for ctx.Err() == nil {
		if d.relay(ctx) {
			last = time.Now()
		}
		pause := d.cfg.Poll / 4
		if time.Since(last) < relayBusy {
			pause /= relayQuicker
		}
		wait.Sleep(ctx, pause)
	}
}

// relay empties the outbox, as messages that are accepted like all others, and
// reports whether there were any. A row that is refused has become a dead letter, of
// which the observers learn here: there is no endpoint, and so no receiver, whose Retryer
// could say so.
func (d *Dispatcher) relay(ctx context.Context) (found bool) {
	for ctx.Err() == nil {
		admit := d.admitter(ctx)
		var admitted []webhook.Message
		var done store.RelayResult
		var err error
		_ = d.parts[partOutbox].Do(func() error {
			done, err = d.cfg.Store.Relay(ctx, storeBatch, func(m *webhook.Message) (map[string]bool, error) {
				ordered, _, err := admit(m)
				if err == nil {
					admitted = append(admitted, webhook.Message{Endpoints: m.Endpoints, NotBefore: m.NotBefore})
				}
				return ordered, err
			})
			return cmp.Or(err, errors.Join(done.Stuck...))
		})
		for _, l := range done.Dead {
			edge.DeadLettered(ctx, d.outbox, l.Queue, reason.Terminal)
		}
		if len(done.Stuck) > 0 && d.seldom("rows that stay", stuckEvery) {
			d.warn(ctx, "rows stay in the outbox", some(done.Stuck))
		}
		d.stats.accepted.Add(int64(done.Accepted))
		if done.Accepted > 0 {
			// Of duplicates among them the receivers learn in vain.
			for i := range admitted {
				d.announce(&admitted[i])
			}
			d.wake()
		}
		if !d.warn(ctx, "outbox not read", err) || done.Rows == 0 {
			return found
		}
		found = true
	}
	return found
}

// some joins the first errors of many, and says how many there are more.
func some(errs []error) error {
	const shown = 3
	if more := len(errs) - shown; more > 0 {
		return fmt.Errorf("%w, and %d more", errors.Join(errs[:shown]...), more)
	}
	return errors.Join(errs...)
}
