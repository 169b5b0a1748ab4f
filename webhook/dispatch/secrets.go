package dispatch

import (
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

// keep gives an endpoint that is put without secrets those that it has: what a
// configuration leaves out must not become unsigned. What comes of it replaces that very
// version.
func (d *Dispatcher) keep(ctx context.Context, e *webhook.Endpoint) error {
	stored, err := d.stored(ctx, e.ID)
	switch {
	case errors.Is(err, webhook.ErrNotFound) && e.Version == 0:
		e.Version = webhook.VersionNone
	case errors.Is(err, webhook.ErrNotFound):
	case err != nil:
		return err
	default:
		e.Secrets, e.OldSecrets = stored.Secrets, stored.OldSecrets
		if e.Version == 0 {
			e.Version = stored.Version
		}
	}
	return nil
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
	return d.update(ctx, id, func(e *webhook.Endpoint) error {
		refuse := func(format string, args ...any) error {
			return fmt.Errorf("%w endpoint: "+format, append([]any{webhook.ErrInvalid}, args...)...)
		}
		switch {
		case overlap < 0 || overlap > MaxOverlap:
			return refuse("overlap %v is outside 0s to %v", overlap, MaxOverlap)
		case len(e.Secrets) == 0 && e.Unsigned:
			return refuse("it is unsigned: a PATCH of unsigned to false makes a secret")
		case len(e.Secrets) == 0:
			return refuse("it signs with the secrets of application %q: rotate those", e.Application)
		case slices.ContainsFunc(e.Secrets, webhook.IsRef):
			return refuse("its secrets are references: rotate what they name")
		}
		now := d.now().UTC()
		var old []webhook.OldSecret
		if overlap > 0 {
			for _, s := range e.Secrets {
				old = append(old, webhook.OldSecret{Secret: s, Until: now.Add(overlap)})
			}
			old = append(old, e.SigningStill(now)...)
		}
		if len(old) >= maxSecrets {
			return refuse("%d secrets sign already: wait until one of old_secrets has ended, or rotate with an overlap of 0s", len(old))
		}
		e.MadeSecret = webhook.NewSecretLike(e.Secrets[0])
		e.Secrets, e.OldSecrets = []string{e.MadeSecret}, old
		return nil
	})
}

// errSame ends a change that changes nothing.
var errSame = errors.New("nothing to change")

// forgetSecrets takes out of the store what signs no more. Whichever process comes
// first does it.
func (d *Dispatcher) forgetSecrets(ctx context.Context) {
	for id, l := range d.lanes.all() {
		now := d.now()
		if len(l.ep.conf.SigningStill(now)) == len(l.ep.conf.OldSecrets) {
			continue
		}
		_, err := d.update(ctx, id, func(e *webhook.Endpoint) error {
			still := e.SigningStill(now)
			if len(still) == len(e.OldSecrets) {
				return errSame
			}
			e.OldSecrets = still
			return nil
		})
		switch {
		case err == nil:
			d.log.Info("old secrets removed", slog.String("endpoint", id))
		case !errors.Is(err, errSame) && !errors.Is(err, webhook.ErrNotFound):
			d.warn(ctx, "old secrets of endpoint "+strconv.Quote(id)+" not removed", err)
		}
	}
}

// signing returns the endpoint's signer; references are looked up each time,
// so that a rotated secret is used at once. A secret that is configured as it is
// is parsed for the first attempt only, and when an old one has ended.
func (e *endpoint) signing(ctx context.Context) (*webhook.Signer, error) {
	now := e.d.now()
	e.mu.Lock()
	known, until := e.signer, e.signerUntil
	e.mu.Unlock()
	if known != nil && (until.IsZero() || now.Before(until)) {
		return known, nil
	}
	s, fixed := &webhook.Signer{}, true
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
	until = time.Time{}
	for _, old := range e.conf.SigningStill(now) {
		if err := s.Add(old.Secret); err != nil {
			return nil, err
		}
		until = earliest(until, old.Until)
	}
	if fixed {
		e.mu.Lock()
		e.signer, e.signerUntil = s, until
		e.mu.Unlock()
	}
	return s, nil
}
