package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
)

// PutEndpoint checks an endpoint and adds or replaces it. All faults are found
// at once. e.Version is the version that it is to replace: 0 for any or none,
// [webhook.VersionNone] for none; when another is stored, nothing is written and the
// error is [webhook.ErrVersion]. The endpoint's state stays as it is: see Disable and
// TestAndEnable. Without Secrets it keeps those that are stored, whose rotation goes on; a
// new one signs with its application's, or with one that is made and returned as
// MadeSecret.
func (d *Dispatcher) PutEndpoint(ctx context.Context, e webhook.Endpoint) (put webhook.Endpoint, err error) {
	e.OldSecrets = nil
	if len(e.Secrets) > 0 || e.Unsigned {
		return d.putEndpoint(ctx, e)
	}
	err = replace(ctx, "endpoint "+strconv.Quote(e.ID), e.Version, func() error {
		next := e
		if err := d.keep(ctx, &next); err != nil {
			return err
		}
		put, err = d.putEndpoint(ctx, next)
		return err
	})
	return put, err
}

// putEndpoint writes an endpoint as it is, but for a secret that has to be made.
func (d *Dispatcher) putEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	if err := d.sign(ctx, &e); err != nil {
		return e, err
	}
	if err := d.checkEndpoint(ctx, &e); err != nil {
		return e, err
	}
	made := e.MadeSecret
	e.MadeSecret = ""
	// The state is the store's: a configuration that is put must not enable.
	e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince, e.Held = "", "", "", time.Time{}, time.Time{}, ""
	look := time.Now()
	e, err := d.cfg.Store.PutEndpoint(ctx, e)
	if err != nil {
		return e, err
	}
	if err := d.reread(ctx); err != nil {
		return e, err
	}
	if r := d.receiver(e.ID); r != nil && !r.endpoint().cred.refreshable() {
		r.ready(look) // its references were looked up just now
	}
	e.MadeSecret = made
	return e, nil
}

// UpdateEndpoint changes an endpoint: change is handed what is stored, secrets
// included, and what it makes of that replaces that very version. When another
// write comes first, change is called again with what that one wrote, so that
// of two changes neither is lost. Other secrets end the rotation of those before; one that
// has none then gets one, as with PutEndpoint.
func (d *Dispatcher) UpdateEndpoint(ctx context.Context, id string, change func(*webhook.Endpoint) error) (webhook.Endpoint, error) {
	return d.update(ctx, id, func(e *webhook.Endpoint) error {
		secrets := slices.Clone(e.Secrets)
		err := change(e)
		if !slices.Equal(secrets, e.Secrets) {
			e.OldSecrets = nil
		}
		return err
	})
}

// update is UpdateEndpoint, with the old secrets as change leaves them.
func (d *Dispatcher) update(ctx context.Context, id string, change func(*webhook.Endpoint) error) (e webhook.Endpoint, err error) {
	err = anew(ctx, "endpoint "+strconv.Quote(id), func() error {
		if e, err = d.stored(ctx, id); err != nil {
			return err
		}
		version, tenant := e.Version, e.Application
		if err := change(&e); err != nil {
			return err
		}
		if e.Application != tenant {
			return fmt.Errorf("%w endpoint: application cannot be changed: delete the endpoint and add it to the other application", webhook.ErrInvalid)
		}
		e.ID, e.Version = id, version
		e, err = d.putEndpoint(ctx, e)
		return err
	})
	return e, err
}

// updates is how often a change is made anew because another write came first:
// one of those writes succeeds each time, so that only a crowd gets there.
const updates = 32

// anew calls update until no other write has come first.
func anew(ctx context.Context, what string, update func() error) error {
	backoff := wait.Backoff{Base: time.Millisecond, Cap: 128 * time.Millisecond}
	for range updates {
		if err := update(); !errors.Is(err, webhook.ErrVersion) {
			return err
		}
		if !wait.Sleep(ctx, backoff.Next()) {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%s: concurrent writes came first %d times: try again", what, updates)
}

// stored returns a copy of an endpoint as the store has it. It shares nothing with
// what a store in memory keeps, so that a change that fails changes nothing.
func (d *Dispatcher) stored(ctx context.Context, id string) (webhook.Endpoint, error) {
	e, err := d.cfg.Store.Endpoint(ctx, id)
	if err != nil {
		return e, err
	}
	e.Secrets, e.OldSecrets = slices.Clone(e.Secrets), slices.Clone(e.OldSecrets)
	e.Headers, e.Types = slices.Clone(e.Headers), slices.Clone(e.Types)
	if e.Auth != nil {
		auth := *e.Auth
		auth.Scopes = slices.Clone(auth.Scopes)
		e.Auth = &auth
	}
	if e.TLS != nil {
		settings := *e.TLS
		e.TLS = &settings
	}
	return e, nil
}

// reread makes a change of an endpoint known at once in this process; others
// learn of it within seconds, or from a [store.Waker].
func (d *Dispatcher) reread(ctx context.Context) error {
	err := d.Load(ctx)
	d.wake()
	return err
}

// Endpoint returns one endpoint as [Dispatcher.Endpoints] does, or
// [webhook.ErrNotFound]. One that cannot be read has an Error, and is none here.
func (d *Dispatcher) Endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	e, err := d.cfg.Store.Endpoint(ctx, id)
	if err != nil && !errors.Is(err, webhook.ErrUnreadable) {
		return e, err
	}
	return d.Show(e), nil
}

// Endpoints lists the endpoints, with their secrets masked and with what this
// process holds them for.
func (d *Dispatcher) Endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	list, err := d.cfg.Store.Endpoints(ctx)
	for i := range list {
		list[i] = d.Show(list[i])
	}
	return list, err
}

// Show returns an endpoint as it may be shown, with what this process holds it for.
func (d *Dispatcher) Show(e webhook.Endpoint) webhook.Endpoint {
	e = e.Mask()
	e.Unsigned = e.Error == "" && len(e.Secrets) == 0 && (e.Unsigned || e.Tenant == nil || len(e.Tenant.Secrets) == 0) // and one that an earlier version has stored
	if err := e.Tenant.CheckSuspended(); err != nil {
		e.Held = err.Error()
	} else if r := d.receiver(e.ID); r != nil {
		e.Held = r.held()
	}
	return e
}

// Held returns the endpoints to which this process sends nothing because a
// secret or a token is not to be had, with what is missing.
func (d *Dispatcher) Held() map[string]string {
	held := map[string]string{}
	for id, r := range d.receivers.all() {
		if why := r.lacks(); why != "" && r.enabled() {
			held[id] = why
		}
	}
	return held
}

// Unreadable returns the endpoints that this process does not serve as they are stored,
// since it cannot read that, with why. It sends nothing to them, or goes on with an
// earlier configuration.
func (d *Dispatcher) Unreadable() map[string]string {
	list := map[string]string{}
	d.receivers.unserved.Range(func(id, u any) bool {
		list[id.(string)] = u.(unserved).err.Error()
		return true
	})
	return list
}

// Breakers counts the enabled endpoints by the states of their circuit breakers in this
// process. All states are there.
func (d *Dispatcher) Breakers() map[breaker.State]int {
	states := map[breaker.State]int{breaker.Closed: 0, breaker.HalfOpen: 0, breaker.Open: 0}
	for _, r := range d.receivers.all() {
		if r.enabled() {
			states[r.breaker()]++
		}
	}
	return states
}

// Disable stops sending to an endpoint. Its messages are kept until R-3's 24
// hours are over, and then become dead letters. Attempts under way are not cut
// off. why is shown to operators.
func (d *Dispatcher) Disable(ctx context.Context, id, why string) error {
	return d.SetState(ctx, id, webhook.Disabled, webhook.ByOperator, why)
}

// SetState disables an endpoint or, on the caller's word alone, enables it (see
// [Dispatcher.TestAndEnable]), in the name of a party, [webhook.ByOperator] or
// [webhook.ByTenant]. A tenant that enables what an operator has disabled gets
// [webhook.ErrDisabledByOperator].
func (d *Dispatcher) SetState(ctx context.Context, id string, state webhook.EndpointState, by webhook.Party, why string) error {
	if err := webhook.CheckReason(why); err != nil {
		return err
	}
	if err := d.cfg.Store.SetEndpointState(ctx, id, state, by, why, time.Time{}); err != nil {
		return err
	}
	return d.reread(ctx)
}

// TestResult is how an endpoint responded to a test message.
type TestResult struct {
	OK        bool   `json:"ok"`
	Status    int    `json:"status,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
	Response  string `json:"response,omitempty"`
	Enabled   bool   `json:"enabled"`
}

// TestAndEnable sends a test message to an endpoint in the name of a party, as
// [Dispatcher.Test] does, and enables it when that was accepted. A response that refuses it
// is no error of the call. What a tenant may not enable is sent nothing.
func (d *Dispatcher) TestAndEnable(ctx context.Context, id string, by webhook.Party) (TestResult, error) {
	out, err := d.Test(ctx, id, "", nil, by)
	if err != nil || !out.OK {
		return out, err
	}
	if err := d.SetState(ctx, id, webhook.Enabled, by, ""); err != nil {
		return out, err
	}
	out.Enabled = true
	return out, nil
}

// testType is the type of a test message that has no other.
const testType = "forbear.test"

// Test sends a test message to an endpoint in the name of a party, and leaves the
// endpoint's state as it is. messageType and body may be empty: then they are
// forbear's own. What a tenant may not enable is sent nothing. More tests than the rate of
// the endpoint or of its application allows get a [*RateError].
func (d *Dispatcher) Test(ctx context.Context, id, messageType string, body []byte, by webhook.Party) (TestResult, error) {
	e, err := d.cfg.Store.Endpoint(ctx, id)
	if err == nil && by != webhook.ByOperator {
		err = e.StaysDisabled()
	}
	if err != nil {
		return TestResult{}, err
	}
	m := webhook.Message{ID: webhook.NewID("msg_test"), Endpoints: []string{id}, Type: cmp.Or(messageType, testType), Body: body}
	if m.Body == nil {
		m.Body, _ = json.Marshal(map[string]string{"type": m.Type}) // never fails
	}
	if err := cmp.Or(m.CheckPayload(d.cfg.MaxPayload), m.Prepare(d.now().UTC())); err != nil {
		return TestResult{}, err
	}
	if err := d.limitTest(&e); err != nil {
		return TestResult{}, err
	}
	return d.try(ctx, m)
}

// try sends a message to its one endpoint, once and now, past the queue. It looks
// for a credential that was missing, and a hold goes on when it still is.
func (d *Dispatcher) try(ctx context.Context, m webhook.Message) (TestResult, error) {
	id := m.Endpoints[0]
	r := d.receiver(id)
	if r == nil {
		return TestResult{}, cmp.Or(d.receivers.outdated(id), fmt.Errorf("endpoint %q: %w", id, webhook.ErrNotFound))
	}
	ep := r.endpoint()
	if err := ep.conf.Tenant.CheckSuspended(); err != nil {
		return TestResult{}, err
	}
	m.Created = d.now().UTC()
	held := r.test()
	d.ask(id)
	a := r.send(ctx, ep, &m, 1, ep.attemptTimeout())
	if a.unready != nil {
		if held {
			r.unready(a)
		}
		return TestResult{ErrorType: "credential", Response: a.missing()}, nil
	}
	if a.delivered() {
		r.tested()
	}
	return TestResult{OK: a.delivered(), Status: a.record.Status, ErrorType: a.failure.Type, Response: a.record.Response}, nil
}

// test makes whatever holds the endpoint be looked at at once, and reports whether it is
// held for a credential.
func (r *receiver) test() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookAgain()
	return r.holds[credential].on
}

// tested records that the endpoint has taken a test message.
func (r *receiver) tested() {
	r.mu.Lock()
	defer r.unlock()
	r.accepted(time.Now())
}
