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
// does with an endpoint: without Secrets it keeps those that are stored, whose rotation goes
// on. Its endpoints go by it at once in this process, and in others within seconds.
func (d *Dispatcher) PutApplication(ctx context.Context, a webhook.Application) (put webhook.Application, err error) {
	a.OldSecrets = nil
	if len(a.Secrets) > 0 {
		return d.putApplication(ctx, a)
	}
	err = replace(ctx, "application "+strconv.Quote(a.ID), a.Version, func() error {
		next := a
		if err := d.keepShared(ctx, &next); err != nil {
			return err
		}
		put, err = d.putApplication(ctx, next)
		return err
	})
	return put, err
}

// putApplication writes an application as it is.
func (d *Dispatcher) putApplication(ctx context.Context, a webhook.Application) (webhook.Application, error) {
	if err := errors.Join(a.Validate(), d.checkSecrets(ctx, "application", a.Secrets)); err != nil {
		return a, err
	}
	if err := d.checkSigning(ctx, &a); err != nil {
		return a, err
	}
	made := a.MadeSecret
	a.MadeSecret = ""
	a, err := d.cfg.Store.PutApplication(ctx, a)
	if err != nil {
		return a, err
	}
	a.MadeSecret = made
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
	for _, r := range d.receivers.tenant(a.ID) {
		if e := r.endpoint(); e.shared && len(e.conf.Secrets) > 0 {
			return fmt.Errorf("%w application: secrets cannot be removed: endpoint %q signs with them", webhook.ErrInvalid, r.id)
		}
	}
	return nil
}

// UpdateApplication changes an application as [Dispatcher.UpdateEndpoint] does an
// endpoint: other secrets end the rotation of those before.
func (d *Dispatcher) UpdateApplication(ctx context.Context, id string, change func(*webhook.Application) error) (webhook.Application, error) {
	return d.updateApplication(ctx, id, func(a *webhook.Application) error {
		secrets := slices.Clone(a.Secrets)
		err := change(a)
		if !slices.Equal(secrets, a.Secrets) {
			a.OldSecrets = nil
		}
		return err
	})
}

// updateApplication is UpdateApplication, with the old secrets as change leaves them.
func (d *Dispatcher) updateApplication(ctx context.Context, id string, change func(*webhook.Application) error) (a webhook.Application, err error) {
	err = anew(ctx, "application "+strconv.Quote(id), func() error {
		if a, err = d.storedApplication(ctx, id); err != nil {
			return err
		}
		version := a.Version
		if err := change(&a); err != nil {
			return err
		}
		a.ID, a.Version = id, version
		a, err = d.putApplication(ctx, a)
		return err
	})
	return a, err
}

// storedApplication returns a copy of an application as the store has it, as stored does
// of an endpoint.
func (d *Dispatcher) storedApplication(ctx context.Context, id string) (webhook.Application, error) {
	a, err := d.cfg.Store.Application(ctx, id)
	a.Secrets, a.OldSecrets = slices.Clone(a.Secrets), slices.Clone(a.OldSecrets)
	return a, err
}
