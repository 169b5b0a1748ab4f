package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// checkEndpoint refuses an endpoint that could not be served, with all of its
// faults. What its references name is looked up, so that a misspelt one is
// found here and not by the first delivery.
func (d *Dispatcher) checkEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	err := errors.Join(e.Validate(d.cfg.Guard), d.checkSecrets(ctx, "endpoint", e.Secrets), d.checkAuth(ctx, e.Auth), d.checkTLS(ctx, e.TLS))
	e.Policy.Kind = forbear.Webhook
	return err
}

// checkSecrets refuses secrets that nothing can be signed with, and references
// that name no such secret. Its errors show positions and references, no secrets.
func (d *Dispatcher) checkSecrets(ctx context.Context, of string, secrets []string) error {
	if len(secrets) > maxSecrets {
		return fmt.Errorf("%w %s: %d secrets, want at most %d", webhook.ErrInvalid, of, len(secrets), maxSecrets)
	}
	var errs []error
	for i, s := range secrets {
		if s == deadletter.Masked {
			continue // refused as such
		}
		if webhook.IsRef(s) {
			value, err := d.cfg.Secrets.lookup(ctx, s)
			if err != nil {
				errs = append(errs, fmt.Errorf("%w %s: secrets[%d]: %w", webhook.ErrInvalid, of, i, err))
				continue
			}
			if err := webhook.ParseSecret(value); err != nil {
				errs = append(errs, fmt.Errorf("secrets[%d]: %s names an %w", i, s, err))
			}
			continue
		}
		if err := webhook.ParseSecret(s); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// checkTLS refuses references that name nothing that TLS could use now.
func (d *Dispatcher) checkTLS(ctx context.Context, t *webhook.TLS) error {
	if t == nil || (t.Cert == "") != (t.Key == "") {
		return nil // refused as such
	}
	for _, ref := range []string{t.CA, t.Cert, t.Key} {
		if ref != "" && !webhook.IsRef(ref) {
			return nil // refused as such, and no error may show it
		}
	}
	m, err := loadTLS(ctx, d.cfg.Secrets, t)
	if err == nil {
		err = m.valid(t.Cert, d.now())
	}
	if err != nil {
		return fmt.Errorf("%w endpoint: tls: %w", webhook.ErrInvalid, err)
	}
	return nil
}

// checkAuth refuses a source of the Authorization that could not work: it is one
// reference, or OAuth client credentials in full. A token's server is held to the
// same addresses as the endpoints, and to TLS: http is for those inside that are allowed,
// as in development, or the client's secret would cross the internet in clear.
func (d *Dispatcher) checkAuth(ctx context.Context, a *webhook.Auth) error {
	ref := ""
	switch {
	case a == nil:
		return nil
	case a.TokenURL == "" && !webhook.IsRef(a.Secret):
		return fmt.Errorf("%w auth: want a reference (env:NAME or file:NAME) as secret, or a token_url", webhook.ErrInvalid)
	case a.TokenURL == "":
		ref = a.Secret
	case a.Secret != "" || a.ClientID == "" || !webhook.IsRef(a.ClientSecret):
		return fmt.Errorf("%w auth: token_url needs client_id and a reference (env:NAME or file:NAME) as client_secret, and allows no secret", webhook.ErrInvalid)
	case !strings.HasPrefix(a.TokenURL, "https://") && len(d.cfg.Guard.Allow) == 0:
		return fmt.Errorf("%w auth: token_url must be https", webhook.ErrInvalid)
	default:
		guard := d.cfg.Guard
		if !strings.HasPrefix(a.TokenURL, "https://") {
			guard = guard.Inside()
		}
		if err := guard.CheckURL(a.TokenURL); err != nil {
			return fmt.Errorf("auth: token_url: %w", err)
		}
		ref = a.ClientSecret
	}
	if _, err := d.cfg.Secrets.lookup(ctx, ref); err != nil {
		return fmt.Errorf("%w auth: %w", webhook.ErrInvalid, err)
	}
	return nil
}
