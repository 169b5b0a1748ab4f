package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/forbear-go/forbear/webhook"
)

// PutApplication checks an application and adds or replaces it, as [Dispatcher.PutEndpoint]
// does with an endpoint. Its endpoints go by it at once in this process, and in others
// within seconds.
func (d *Dispatcher) PutApplication(ctx context.Context, a webhook.Application) (webhook.Application, error) {
	if err := errors.Join(a.Validate(), d.checkSecrets(ctx, "application", a.Secrets)); err != nil {
		return a, err
	}
	if err := d.checkSigning(ctx, &a); err != nil {
		return a, err
	}
	a, err := d.cfg.Store.PutApplication(ctx, a)
	if err != nil {
		return a, err
	}
	return a, d.reread(ctx)
}

// checkSigning refuses to take from an application the secrets that its endpoints sign
// with: they would send unsigned.
func (d *Dispatcher) checkSigning(ctx context.Context, a *webhook.Application) error {
	if len(a.Secrets) > 0 {
		return nil
	}
	if err := d.current(ctx); err != nil {
		return err
	}
	for _, l := range d.lanes.tenant(a.ID) {
		if l.ep.shared && len(l.ep.conf.Secrets) > 0 {
			return fmt.Errorf("%w application: secrets cannot be removed: endpoint %q signs with them", webhook.ErrInvalid, l.ep.id())
		}
	}
	return nil
}

// UpdateApplication changes an application as [Dispatcher.UpdateEndpoint] does an
// endpoint.
func (d *Dispatcher) UpdateApplication(ctx context.Context, id string, change func(*webhook.Application) error) (a webhook.Application, err error) {
	err = anew(ctx, "application "+strconv.Quote(id), func() error {
		if a, err = d.cfg.Store.Application(ctx, id); err != nil {
			return err
		}
		version := a.Version
		a.Secrets = slices.Clone(a.Secrets) // a store in memory keeps them
		if err := change(&a); err != nil {
			return err
		}
		a.ID, a.Version = id, version
		a, err = d.PutApplication(ctx, a)
		return err
	})
	return a, err
}
