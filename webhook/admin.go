package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// PutEndpoint checks an endpoint and adds or replaces it. All faults are found
// at once.
func (d *Dispatcher) PutEndpoint(ctx context.Context, e Endpoint) (Endpoint, error) {
	if err := d.checkEndpoint(&e); err != nil {
		return e, err
	}
	e.State, e.Reason, e.Version, e.Since, e.FailingSince = "", "", 0, time.Time{}, time.Time{}
	e, err := d.cfg.Store.PutEndpoint(ctx, e)
	if err != nil {
		return e, err
	}
	return e, d.reread(ctx)
}

// reread makes a change of an endpoint known at once.
func (d *Dispatcher) reread(ctx context.Context) error {
	err := d.Load(ctx)
	d.wake()
	return err
}

func (d *Dispatcher) checkEndpoint(e *Endpoint) error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w endpoint: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if !visible(e.ID, 64) || strings.ContainsAny(e.ID, "/?#%") {
		add("id is not 1 to 64 visible characters without / ? # %%")
	}
	if err := d.cfg.Guard.CheckURL(e.URL); err != nil {
		errs = append(errs, err)
	}
	if len(e.Secrets) > 10 {
		add("%d secrets, at most 10", len(e.Secrets))
	}
	for _, s := range e.Secrets {
		if !isRef(s) {
			if err := ParseSecret(s); err != nil {
				errs = append(errs, err)
			}
		}
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
	if err := d.checkAuth(e.Auth); err != nil {
		errs = append(errs, err)
	}
	if e.Policy.Kind != forbear.Sync && e.Policy.Kind != forbear.Webhook {
		add("policy is of kind %s, want webhook", e.Policy.Kind)
	}
	e.Policy.Kind = forbear.Webhook
	if err := e.Policy.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w endpoint: policy: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

func (d *Dispatcher) checkAuth(a *Auth) error {
	switch {
	case a == nil:
		return nil
	case a.TokenURL == "" && !isRef(a.Secret):
		return fmt.Errorf("%w auth: want a reference (env:NAME, file:NAME) as secret, or a token_url", ErrInvalid)
	case a.TokenURL == "":
		return nil
	case a.Secret != "" || a.ClientID == "" || !isRef(a.ClientSecret):
		return fmt.Errorf("%w auth: with a token_url want client_id and a reference as client_secret, and no secret", ErrInvalid)
	case !strings.HasPrefix(a.TokenURL, "https://") && len(d.cfg.Guard.Allow) == 0:
		return fmt.Errorf("%w auth: token_url is not https", ErrInvalid)
	}
	return d.cfg.Guard.CheckURL(a.TokenURL)
}

// Endpoints lists the endpoints, with their secrets masked.
func (d *Dispatcher) Endpoints(ctx context.Context) ([]Endpoint, error) {
	list, err := d.cfg.Store.Endpoints(ctx)
	for i := range list {
		list[i] = list[i].Mask()
	}
	return list, err
}

// Mask returns e without its secrets, header values and the query of its URL.
func (e Endpoint) Mask() Endpoint {
	secrets := make([]string, len(e.Secrets))
	for i, s := range e.Secrets {
		if secrets[i] = s; !isRef(s) {
			secrets[i] = deadletter.Masked
		}
	}
	headers := make([]Header, len(e.Headers))
	for i, h := range e.Headers {
		headers[i] = Header{Name: h.Name, Value: deadletter.Masked}
	}
	e.Secrets, e.Headers = secrets, headers
	if address, _, ok := strings.Cut(e.URL, "?"); ok {
		e.URL = address + "?" + deadletter.Masked
	}
	return e
}

// Disable stops sending to an endpoint. Its messages are kept until R-3's 24
// hours are over, and then become dead letters.
func (d *Dispatcher) Disable(ctx context.Context, id, why string) error {
	if err := d.cfg.Store.SetEndpointState(ctx, id, Disabled, why, time.Time{}); err != nil {
		return err
	}
	return d.reread(ctx)
}

// TestResult is what an endpoint answered to a test message.
type TestResult struct {
	OK        bool   `json:"ok"`
	Status    int    `json:"status,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
	Response  string `json:"response,omitempty"`
	Enabled   bool   `json:"enabled"`
}

// TestAndEnable sends a test message to an endpoint and enables it when that
// was accepted.
func (d *Dispatcher) TestAndEnable(ctx context.Context, id string) (TestResult, error) {
	out, err := d.try(ctx, Message{ID: NewID("msg_test"), Endpoints: []string{id}, Type: "forbear.test", Body: []byte(`{"type":"forbear.test"}`)})
	if err != nil || !out.OK {
		return out, err
	}
	if err := d.cfg.Store.SetEndpointState(ctx, id, Enabled, "", time.Time{}); err != nil {
		return out, err
	}
	out.Enabled = true
	return out, d.reread(ctx)
}

// try sends a message to its one endpoint, once and now, past the queue.
func (d *Dispatcher) try(ctx context.Context, m Message) (TestResult, error) {
	l := d.lane(m.Endpoints[0])
	if l == nil {
		return TestResult{}, fmt.Errorf("endpoint %q: %w", m.Endpoints[0], ErrNotFound)
	}
	m.Created = d.now().UTC()
	res := l.send(ctx, &m, 1, l.timeout(&forbear.State{}))
	if res.unready != nil {
		return TestResult{ErrorType: "credential", Response: clip(res.unready.Error(), 256)}, nil
	}
	return TestResult{OK: res.failure.Class == forbear.ClassSuccess, Status: res.status, ErrorType: res.failure.Type, Response: res.response}, nil
}

// Deliveries tells how a message fares at each of its endpoints.
func (d *Dispatcher) Deliveries(ctx context.Context, message string) ([]Info, error) {
	list, err := d.cfg.Store.Deliveries(ctx, message)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %q: %w", message, ErrNotFound)
	}
	return list, err
}

// Redrive is the target of the webhooks' dead letters.
func (d *Dispatcher) Redrive(ctx context.Context, l deadletter.Letter) error {
	m := FromLetter(l)
	err := d.admitter(ctx)(&m)
	if err == nil {
		err = d.cfg.Store.Requeue(ctx, l, d.keepsOrder(l.Destination))
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnknownEndpoint) || errors.Is(err, ErrConflict) {
		return fmt.Errorf("%w: %w", deadletter.ErrRefused, err)
	}
	if err != nil {
		return err
	}
	if lane := d.lane(l.Destination); lane != nil {
		lane.dueAt(time.Now())
		d.wake()
	}
	return nil
}
