package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// checkEndpoint refuses an endpoint that could not be served, with all of its
// faults. What its references name is looked up, so that a misspelt one is
// found here and not by the first delivery.
func (d *Dispatcher) checkEndpoint(ctx context.Context, e *Endpoint) error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w endpoint: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if !visible(e.ID, 64) || strings.ContainsAny(e.ID, "/?#%") {
		add("id is not 1 to 64 visible characters without / ? # %%")
	}
	if e.Version < VersionNone {
		add("version %d: want one that is stored, 0 or %d", e.Version, VersionNone)
	}
	if err := d.cfg.Guard.CheckURL(e.URL); err != nil {
		errs = append(errs, err)
	}
	if e.Format != FormatRaw && e.Format != FormatStructured && e.Format != FormatBinary {
		add("format %q: want %q, %q or none", e.Format, FormatStructured, FormatBinary)
	}
	if e.Concurrency < 0 || e.Concurrency > maxConcurrency {
		add("concurrency %d is outside 0-%d", e.Concurrency, maxConcurrency)
	}
	if e.Rate < 0 {
		add("rate %v is negative", e.Rate)
	}
	if e.DisableAfter < 0 {
		add("disable_after %v is negative", e.DisableAfter)
	}
	if err := checkHeaders(e.Headers); err != nil {
		errs = append(errs, err)
	}
	for _, field := range placeholders(e) {
		add("%s is %s, which stands for what is not shown: send the value itself, or PATCH the endpoint, where what is left out stays as it is", field, deadletter.Masked)
	}
	errs = append(errs, d.checkSecrets(ctx, e.Secrets), d.checkAuth(ctx, e.Auth))
	if e.Policy.Kind != forbear.Sync && e.Policy.Kind != forbear.Webhook {
		add("policy is of kind %s, want webhook", e.Policy.Kind)
	}
	e.Policy.Kind = forbear.Webhook
	if err := e.Policy.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w endpoint: policy: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

// placeholders names the fields that hold what [Endpoint.Mask] puts there
// instead of their values. Written back, it would replace them.
func placeholders(e *Endpoint) (fields []string) {
	for i, s := range e.Secrets {
		if s == deadletter.Masked {
			fields = append(fields, fmt.Sprintf("secrets[%d]", i))
		}
	}
	for _, h := range e.Headers {
		if h.Value == deadletter.Masked {
			fields = append(fields, fmt.Sprintf("the value of header %.40q", h.Name))
		}
	}
	if maskedQuery(e.URL) {
		fields = append(fields, "the query of url")
	}
	if a := e.Auth; a != nil {
		for _, f := range []struct{ name, value string }{
			{"auth.secret", a.Secret}, {"auth.client_id", a.ClientID}, {"auth.client_secret", a.ClientSecret},
		} {
			if f.value == deadletter.Masked {
				fields = append(fields, f.name)
			}
		}
		if maskedQuery(a.TokenURL) {
			fields = append(fields, "the query of auth.token_url")
		}
	}
	return fields
}

func maskedQuery(address string) bool {
	_, query, _ := strings.Cut(address, "?")
	return strings.Contains(query, deadletter.Masked)
}

func (d *Dispatcher) checkSecrets(ctx context.Context, secrets []string) error {
	if len(secrets) > 10 {
		return fmt.Errorf("%w endpoint: %d secrets, at most 10", ErrInvalid, len(secrets))
	}
	var errs []error
	for i, s := range secrets {
		if s == deadletter.Masked {
			continue // refused as such
		}
		if isRef(s) {
			value, err := d.cfg.Secrets.lookup(ctx, s)
			if err != nil {
				errs = append(errs, fmt.Errorf("%w endpoint: secrets[%d]: %w", ErrInvalid, i, err))
				continue
			}
			if err := ParseSecret(value); err != nil {
				errs = append(errs, fmt.Errorf("secrets[%d]: %s names an %w", i, s, err))
			}
			continue
		}
		if err := ParseSecret(s); err != nil {
			errs = append(errs, fmt.Errorf("secrets[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (d *Dispatcher) checkAuth(ctx context.Context, a *Auth) error {
	ref := ""
	switch {
	case a == nil:
		return nil
	case a.TokenURL == "" && !isRef(a.Secret):
		return fmt.Errorf("%w auth: want a reference (env:NAME, file:NAME) as secret, or a token_url", ErrInvalid)
	case a.TokenURL == "":
		ref = a.Secret
	case a.Secret != "" || a.ClientID == "" || !isRef(a.ClientSecret):
		return fmt.Errorf("%w auth: with a token_url want client_id and a reference as client_secret, and no secret", ErrInvalid)
	case !strings.HasPrefix(a.TokenURL, "https://") && len(d.cfg.Guard.Allow) == 0:
		return fmt.Errorf("%w auth: token_url is not https", ErrInvalid)
	default:
		if err := d.cfg.Guard.CheckURL(a.TokenURL); err != nil {
			return err
		}
		ref = a.ClientSecret
	}
	if _, err := d.cfg.Secrets.lookup(ctx, ref); err != nil {
		return fmt.Errorf("%w auth: %w", ErrInvalid, err)
	}
	return nil
}
