package dispatch

import (
	"context"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook/store"
)

// Messages lists messages: see [store.MessageStore].
func (d *Dispatcher) Messages(ctx context.Context, f store.MessageFilter, before int64, limit int) (store.MessagePage, error) {
	return d.cfg.Store.Messages(ctx, f, before, limit)
}

// Cancel ends messages that wait: see [store.MessageStore]. One that this process
// has claimed is sent once more.
func (d *Dispatcher) Cancel(ctx context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	results, err := d.cfg.Store.Cancel(ctx, numbers, by)
	d.look() // others of their keys may go
	return results, err
}

// SendAgain makes messages due again that have ended: see [store.MessageStore].
func (d *Dispatcher) SendAgain(ctx context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	results, err := d.cfg.Store.SendAgain(ctx, numbers, queue.DefaultMaxRedrives, by)
	d.look()
	return results, err
}
