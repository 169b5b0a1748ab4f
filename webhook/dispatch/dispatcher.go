package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// Alerter takes what somebody has to know, durably. A deadletter.Store is one.
type Alerter interface {
	Raise(ctx context.Context, a deadletter.Alert) error
}

// Config says how a dispatcher works. Store and Alerts are required.
type Config struct {
	Store  webhook.Store
	Alerts Alerter

	// Owner names this process in leases and histories. Default: the host's
	// name and the process id.
	Owner string
	// Guard says which addresses may be reached.
	Guard webhook.Guard
	// Transport sends the attempts; default Guard.Transport. It has to refuse
	// what Guard would.
	Transport http.RoundTripper
	// Secrets finds what endpoints refer to. Default: none.
	Secrets Secrets
	// Options are what each endpoint's [forbear.Retryer] is built with, such as
	// observers: metrics, traces, the log. The dependency is "webhook:" and the
	// endpoint's id. Without any, R-10's lines go to Logger.
	Options []forbear.Option
	// Logger is for what concerns no single retry. Default slog.Default().
	Logger *slog.Logger
	// Now is the wall clock, for tests of clocks that jump. Default time.Now.
	Now func() time.Time
	// Poll is how often the store is looked at without an occasion, and a
	// quarter of it how often the outbox is. Default 1 s.
	Poll time.Duration
	// Retention is how long finished deliveries are kept. Default 7 days.
	Retention time.Duration
}

// Dispatcher delivers messages. Make it with [New], start it with
// [Dispatcher.Run]. It is safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client
	now    func() time.Time
	outbox *forbear.Retryer // that the outbox's dead letters are told as

	loading chan struct{} // has one place: a list of endpoints that was read earlier must not be installed later
	mu      sync.RWMutex
	lanes   map[string]*lane
	ordered map[string]bool

	wakes    chan struct{}
	looks    chan struct{} // the store may hold work that the lanes do not know of
	reload   atomic.Bool
	lease    atomic.Int64 // a [time.Duration]
	outcomes chan webhook.Outcome
	behind   sync.WaitGroup // outcomes that could not be written at first
	chores   chan func(context.Context)
	workers  sync.WaitGroup
	stop     chan struct{}
	sendCtx  context.Context //nolint:containedctx // of all sends, ended when a stop takes too long
	abort    context.CancelFunc

	stats counters
}

type counters struct{ accepted, delivered, failed, postponed, dead atomic.Int64 }

// Stats counts what a dispatcher has done since it was made.
type Stats struct {
	Accepted, Delivered, Failed, Postponed, Dead int64
}

// New returns a dispatcher. It does nothing until Run, but accepts messages
// once [Dispatcher.Load] has read the endpoints.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Alerts == nil {
		return nil, errors.New("webhook: a dispatcher needs a store and a place for alerts")
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s-%d-%s", cmp.Or(host, "host"), os.Getpid(), webhook.NewID("w")[20:])
	}
	if cfg.Secrets == nil {
		cfg.Secrets = LocalSecrets("", "")
	}
	if cfg.Transport == nil {
		cfg.Transport = cfg.Guard.Transport(forbear.DefaultConnect)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if len(cfg.Options) == 0 {
		cfg.Options = []forbear.Option{forbear.WithObserver(forbear.LogObserver(cfg.Logger, nil))}
	}
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.Retention = cmp.Or(cfg.Retention, 7*24*time.Hour)
	d := &Dispatcher{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.Default()), now: cfg.Now,
		client: &http.Client{Transport: cfg.Transport, CheckRedirect: noRedirect},
		lanes:  map[string]*lane{}, ordered: map[string]bool{}, loading: make(chan struct{}, 1),
		wakes: make(chan struct{}, 1), looks: make(chan struct{}, 1), outcomes: make(chan webhook.Outcome, 1024), chores: make(chan func(context.Context), 256),
		stop: make(chan struct{}),
	}
	var err error
	if d.outbox, err = forbear.New("outbox", forbear.Policy{Kind: forbear.Webhook}, append([]forbear.Option{forbear.WithCallerDeadLetter()}, cfg.Options...)...); err != nil {
		return nil, err
	}
	d.sendCtx, d.abort = context.WithCancel(context.Background())
	return d, nil
}

// Stats returns the counters.
func (d *Dispatcher) Stats() Stats {
	c := &d.stats
	return Stats{c.accepted.Load(), c.delivered.Load(), c.failed.Load(), c.postponed.Load(), c.dead.Load()}
}

// Load reads the endpoints. Run does so by itself.
func (d *Dispatcher) Load(ctx context.Context) error {
	select {
	case d.loading <- struct{}{}:
		defer func() { <-d.loading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.reload.Store(false)
	list, err := d.cfg.Store.Endpoints(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, e := range list {
		seen[e.ID] = true
		d.mu.RLock()
		old := d.lanes[e.ID]
		d.mu.RUnlock()
		if old != nil && old.same(&e) {
			continue
		}
		l, err := d.newLane(e, old)
		if err != nil {
			d.log.Error("endpoint cannot be served", slog.String("endpoint", e.ID), slog.String("error", err.Error()))
			continue
		}
		d.mu.Lock()
		d.lanes[e.ID], d.ordered[e.ID] = l, e.Ordered
		d.mu.Unlock()
		d.look()
	}
	d.mu.Lock()
	for id := range d.lanes {
		if !seen[id] {
			delete(d.lanes, id)
			delete(d.ordered, id)
		}
	}
	d.mu.Unlock()
	d.lease.Store(int64(d.leaseTime()))
	return nil
}

// leaseTime covers the longest attempt, the wait for a slot and the writing
// back.
func (d *Dispatcher) leaseTime() time.Duration {
	longest := 10 * time.Second
	for _, l := range d.all() {
		p := l.retryer.Policy()
		longest = max(longest, p.AttemptTimeout())
	}
	return longest + 10*time.Second
}

// same takes over what the store says about the endpoint's state, and reports
// whether its configuration is the one that the lane has.
func (l *lane) same(e *webhook.Endpoint) bool {
	l.mu.Lock()
	if l.ep.Version != e.Version {
		l.mu.Unlock()
		return false
	}
	changed := l.ep.State != e.State
	if changed {
		l.ep.State, l.ep.Reason, l.ep.Since = e.State, e.Reason, e.Since
		if e.State == webhook.Enabled {
			l.failures, l.ep.FailingSince = 0, time.Time{}
			l.due = time.Now()
		}
	}
	l.mu.Unlock()
	if changed && e.State == webhook.Enabled {
		l.hold.lookAgain()
		l.well(l.d.now())
	}
	return true
}

func (d *Dispatcher) newLane(e webhook.Endpoint, old *lane) (*lane, error) {
	e.Policy.Kind = forbear.Webhook
	to, err := newTarget(e.URL)
	if err != nil {
		return nil, bare(err)
	}
	l := &lane{d: d, ep: e, target: to, hold: &hold{}, due: time.Now()}
	if old != nil { // what is known of the receiver stays, unless it is another
		l.hold = old.hold
		old.mu.Lock()
		if old.ep.URL == e.URL {
			l.latency, l.failures = old.latency, old.failures
			if reflect.DeepEqual(old.ep.Policy, e.Policy) && slots(&old.ep) == slots(&e) {
				l.retryer, l.pacing = old.retryer, old.pacing
			}
		}
		old.mu.Unlock()
	}
	if l.retryer == nil {
		if err := l.judge(); err != nil {
			return nil, err
		}
	}
	l.hold.lookAgain()
	l.cred = newCredential(e.Auth, d, l.retryer.Refreshed)
	return l, nil
}

// judge makes the endpoint's Retryer, with its budget and its breaker.
func (l *lane) judge() (err error) {
	id := l.ep.ID
	l.pacing = &pacing{opened: func() {
		l.d.raise(deadletter.Alert{Queue: webhook.QueueOf(id), Reason: "endpoint_slowed", Detail: "endpoint " + id + " keeps failing: attempts are spaced out"})
	}}
	opts := []forbear.Option{forbear.WithCallerDeadLetter(), forbear.WithObserver(l.pacing.observer())}
	l.retryer, err = forbear.New("webhook:"+id, l.ep.Policy, append(opts, l.d.cfg.Options...)...)
	return err
}

func (d *Dispatcher) lane(id string) *lane {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.lanes[id]
}

func (d *Dispatcher) all() []*lane {
	d.mu.RLock()
	defer d.mu.RUnlock()
	list := make([]*lane, 0, len(d.lanes))
	for _, l := range d.lanes {
		list = append(list, l)
	}
	return list
}

// keepsOrder reports whether an endpoint keeps the order of keys.
func (d *Dispatcher) keepsOrder(endpoint string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ordered[endpoint]
}

// Accept takes messages over: when it returns without an error they are on
// disk, and will be delivered or become dead letters. [ErrConflict] refuses all
// of them when the id of one stands for another message.
func (d *Dispatcher) Accept(ctx context.Context, msgs ...webhook.Message) ([]webhook.Accepted, error) {
	admit := d.admitter(ctx)
	for i := range msgs {
		if err := admit(&msgs[i]); err != nil {
			return nil, err
		}
	}
	ordered := map[string]bool{}
	for i := range msgs {
		for _, e := range msgs[i].Endpoints {
			if msgs[i].Key != "" && d.keepsOrder(e) {
				ordered[e] = true
			}
		}
	}
	responses, err := d.cfg.Store.Accept(ctx, msgs, ordered)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range msgs {
		if responses[i].Duplicate {
			continue
		}
		d.stats.accepted.Add(1)
		at := now
		if wait := msgs[i].NotBefore.Sub(d.now()); wait > 0 {
			at = now.Add(wait)
		}
		for _, e := range msgs[i].Endpoints {
			if l := d.lane(e); l != nil {
				l.dueAt(at)
			}
		}
	}
	d.wake()
	return responses, nil
}

// admitter returns admit for a few messages. It reads the endpoints once more,
// at the most, when it meets one that it does not know: another process may
// have just added it.
func (d *Dispatcher) admitter(ctx context.Context) func(*webhook.Message) error {
	read := false
	return func(m *webhook.Message) error {
		err := d.admit(m)
		if !errors.Is(err, webhook.ErrUnknownEndpoint) || read {
			return err
		}
		read = true
		if err := d.Load(ctx); err != nil {
			return err
		}
		return d.admit(m)
	}
}

// admit completes a message and refuses what could not be delivered.
func (d *Dispatcher) admit(m *webhook.Message) error {
	if err := m.Prepare(d.now().UTC()); err != nil {
		return err
	}
	for _, e := range m.Endpoints {
		if d.lane(e) == nil {
			return fmt.Errorf("message %q: %w %q", m.ID, webhook.ErrUnknownEndpoint, e)
		}
	}
	return nil
}

func (d *Dispatcher) stopping() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// wake makes the main loop look at the lanes.
func (d *Dispatcher) wake() {
	select {
	case d.wakes <- struct{}{}:
	default:
	}
}

// finish hands an outcome to the finishers.
func (d *Dispatcher) finish(o webhook.Outcome) { d.outcomes <- o }

// raise notes an alert. It must not be lost, so that it is tried again.
func (d *Dispatcher) raise(a deadletter.Alert) {
	d.chore(func(ctx context.Context) {
		for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 10*time.Second) {
			err := d.cfg.Alerts.Raise(ctx, a)
			if err == nil {
				return
			}
			d.log.Error("alert not stored", slog.String("reason", a.Reason), slog.String("error", err.Error()))
			pause(ctx, jitter(wait))
		}
	})
}

// chore runs f outside of the workers.
func (d *Dispatcher) chore(f func(context.Context)) { d.chores <- f }

// noted acts on what an attempt changed about its lane.
func (d *Dispatcher) noted(l *lane, n noted) {
	if !n.began && !n.ended && n.disable == "" {
		return
	}
	id := l.endpoint().ID
	if n.disable != "" {
		d.log.Error("endpoint disabled", slog.String("endpoint", id), slog.String("reason", n.disable))
		d.raise(deadletter.Alert{Queue: webhook.QueueOf(id), Reason: "endpoint_disabled", Detail: "endpoint " + id + " was disabled: " + n.disable})
		d.setState(id, webhook.Disabled, n.disable, n.failing)
		return
	}
	if n.began || n.ended {
		d.setState(id, webhook.Enabled, "", n.failing)
	}
}

func (d *Dispatcher) setState(id string, s webhook.EndpointState, why string, failing time.Time) {
	d.chore(func(ctx context.Context) {
		if err := d.cfg.Store.SetEndpointState(ctx, id, s, why, failing); err != nil {
			d.log.Error("endpoint state not stored", slog.String("endpoint", id), slog.String("error", err.Error()))
		}
	})
}

// jitter draws a wait for the store: full jitter, and never none.
func jitter(ceiling time.Duration) time.Duration {
	return time.Millisecond + rand.N(ceiling)
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// noRedirect keeps a client from following redirects: an endpoint is an
// address, not a suggestion of one, and each hop would be another way in.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
