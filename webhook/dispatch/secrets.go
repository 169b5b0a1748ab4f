package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The bounds of how long two secrets sign after a rotation, and how many sign at all.
const (
	MaxOverlap = 7 * 24 * time.Hour
	maxSecrets = 10
)

// replace calls put, which replaces a version and no other. Where that is any version, put
// finds out which, and is called again when another write came first.
func replace(ctx context.Context, what string, version int64, put func() error) error {
	if version != 0 {
		return put()
	}
	return anew(ctx, what, put)
}

// keep gives an endpoint that is put without secrets those that it has: what a
// configuration leaves out must not become unsigned. What comes of it replaces that very
// version.
func (d *Dispatcher) keep(ctx context.Context, e *webhook.Endpoint) error {
	stored, err := d.stored(ctx, e.ID)
	there, err := found(&e.Version, stored.Version, err)
	if there {
		e.Secrets, e.OldSecrets = stored.Secrets, stored.OldSecrets
	}
	return err
}

// keepShared is keep for an application. One that replaces any version leaves it
// suspended, as it would without having read it.
func (d *Dispatcher) keepShared(ctx context.Context, a *webhook.Application) error {
	stored, err := d.storedApplication(ctx, a.ID)
	if a.Version == 0 {
		a.Suspended, a.Reason = stored.Suspended, stored.Reason
	}
	there, err := found(&a.Version, stored.Version, err)
	if there {
		a.Secrets, a.OldSecrets = stored.Secrets, stored.OldSecrets
	}
	return err
}

// found reports whether what is put is stored already, by the error of reading that, and
// makes of any version, 0, the one that it replaces.
func found(version *int64, stored int64, err error) (bool, error) {
	if errors.Is(err, webhook.ErrNotFound) {
		stored, err = webhook.VersionNone, nil
	}
	*version = cmp.Or(*version, stored)
	return err == nil && stored != webhook.VersionNone, err
}

// sign makes a secret for an endpoint that would send unsigned without having said so.
func (d *Dispatcher) sign(ctx context.Context, e *webhook.Endpoint) error {
	if len(e.Secrets) > 0 || e.Unsigned {
		return nil
	}
	if e.Application != "" {
		a, err := d.cfg.Store.Application(ctx, e.Application)
		switch {
		case errors.Is(err, webhook.ErrNotFound):
			return nil // the store refuses it
		case err != nil || len(a.Secrets) > 0:
			return err
		}
	}
	e.MadeSecret = webhook.NewSecret()
	e.Secrets = []string{e.MadeSecret}
	return nil
}

// RotateSecrets gives an endpoint a new secret, which is returned as MadeSecret. Its
// former ones sign beside it until the overlap is over, at most [MaxOverlap]; with 0 they
// end at once. The new one is of the kind of the first, symmetric or ed25519. Endpoints
// whose secrets are references, or their application's, are refused with
// [webhook.ErrInvalid]: those are rotated where they are.
func (d *Dispatcher) RotateSecrets(ctx context.Context, id string, overlap time.Duration) (webhook.Endpoint, error) {
	return d.update(ctx, id, func(e *webhook.Endpoint) (err error) {
		switch {
		case len(e.Secrets) == 0 && e.Unsigned:
			return fmt.Errorf("%w endpoint: it is unsigned: PATCH unsigned to false to make a secret", webhook.ErrInvalid)
		case len(e.Secrets) == 0:
			return fmt.Errorf("%w endpoint: it signs with the secrets of application %q: rotate those", webhook.ErrInvalid, e.Application)
		}
		e.MadeSecret, err = d.rotate("endpoint", &e.Secrets, &e.OldSecrets, overlap)
		return err
	})
}

// RotateApplicationSecrets does with the secrets of an application what
// [Dispatcher.RotateSecrets] does with those of an endpoint, for all endpoints that sign
// with them. One that has none is refused with [webhook.ErrInvalid].
func (d *Dispatcher) RotateApplicationSecrets(ctx context.Context, id string, overlap time.Duration) (webhook.Application, error) {
	return d.updateApplication(ctx, id, func(a *webhook.Application) (err error) {
		if len(a.Secrets) == 0 {
			return fmt.Errorf("%w application: it has no secrets: rotate those of its endpoints", webhook.ErrInvalid)
		}
		a.MadeSecret, err = d.rotate("application", &a.Secrets, &a.OldSecrets, overlap)
		return err
	})
}

// rotate puts a new secret, which it returns, in the place of those of an endpoint or of
// an application, and those among the old ones.
func (d *Dispatcher) rotate(of string, secrets *[]string, olds *[]webhook.OldSecret, overlap time.Duration) (made string, err error) {
	switch {
	case overlap < 0 || overlap > MaxOverlap:
		return "", fmt.Errorf("%w %s: overlap %v is outside 0s to %v", webhook.ErrInvalid, of, overlap, MaxOverlap)
	case slices.ContainsFunc(*secrets, webhook.IsRef):
		return "", fmt.Errorf("%w %s: its secrets are references: change the variables or files that they name", webhook.ErrInvalid, of)
	}
	now := d.now().UTC()
	var old []webhook.OldSecret
	if overlap > 0 {
		for _, s := range *secrets {
			old = append(old, webhook.OldSecret{Secret: s, Until: now.Add(overlap)})
		}
		old = append(old, webhook.SigningStill(*olds, now)...)
	}
	if len(old) >= maxSecrets {
		return "", fmt.Errorf("%w %s: %d secrets already sign: wait until one of old_secrets ends, or rotate with overlap 0s", webhook.ErrInvalid, of, len(old))
	}
	made = webhook.NewSecretLike((*secrets)[0])
	*secrets, *olds = []string{made}, old
	return made, nil
}

// forgetSecrets takes out of the store what signs no more. Whichever process comes
// first does it. An application without endpoints, which signs nothing, keeps what it has
// until it gets one.
func (d *Dispatcher) forgetSecrets(ctx context.Context) {
	now, tenants := d.now(), map[string]bool{}
	for id, r := range d.receivers.all() {
		stored := &r.endpoint().stored
		if t := stored.Tenant; t != nil && ended(t.OldSecrets, now) {
			tenants[t.ID] = true
		}
		if ended(stored.OldSecrets, now) {
			_, err := d.update(ctx, id, func(e *webhook.Endpoint) error { return forget(&e.OldSecrets, now) })
			d.forgot(ctx, "endpoint", id, err)
		}
	}
	for id := range tenants {
		_, err := d.updateApplication(ctx, id, func(a *webhook.Application) error { return forget(&a.OldSecrets, now) })
		d.forgot(ctx, "application", id, err)
	}
}

// ended reports whether any of a list signs no more.
func ended(list []webhook.OldSecret, now time.Time) bool {
	return len(webhook.SigningStill(list, now)) < len(list)
}

// errSame ends a change that changes nothing.
var errSame = errors.New("nothing to change")

// forget takes out of a list what signs no more.
func forget(list *[]webhook.OldSecret, now time.Time) error {
	if !ended(*list, now) {
		return errSame
	}
	*list = webhook.SigningStill(*list, now)
	return nil
}

// forgot logs what came of it.
func (d *Dispatcher) forgot(ctx context.Context, of, id string, err error) {
	switch {
	case err == nil:
		d.log.Info("old secrets removed", slog.String(of, id))
	case !errors.Is(err, errSame) && !errors.Is(err, webhook.ErrNotFound):
		d.warn(ctx, "old secrets of "+of+" "+strconv.Quote(id)+" not removed", err)
	}
}

// signer signs for an endpoint until the first of its old secrets ends; zero: it has none.
type signer struct {
	webhook.Signer
	until time.Time
}

// signing returns the endpoint's signer; references are looked up each time,
// so that a rotated secret is used at once. A secret that is configured as it is
// is parsed for the first attempt only, and when an old one has ended.
func (e *endpoint) signing(ctx context.Context) (*webhook.Signer, error) {
	now := e.d.now()
	if s := e.signer.Load(); s != nil && (s.until.IsZero() || now.Before(s.until)) {
		return &s.Signer, nil
	}
	s, fixed := &signer{}, true
	for _, secret := range e.conf.Secrets {
		if !webhook.IsRef(secret) {
			if err := s.Add(secret); err != nil {
				return nil, err
			}
			continue
		}
		fixed = false
		value, err := e.d.cfg.Secrets.lookup(ctx, secret)
		if err != nil {
			return nil, err
		}
		if err := s.Add(value); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSecret, secret, err)
		}
	}
	for _, old := range webhook.SigningStill(e.conf.OldSecrets, now) {
		if err := s.Add(old.Secret); err != nil {
			return nil, err
		}
		s.until = earliest(s.until, old.Until)
	}
	if fixed {
		e.signer.Store(s)
	}
	return &s.Signer, nil
}
