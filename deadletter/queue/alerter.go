package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
)

// Notifier delivers an alert to people. It is called again when it fails,
// and so may deliver the same alert twice, with the same id.
type Notifier interface {
	Name() string
	Notify(ctx context.Context, a Alert) error
}

// Reporter is a [Notifier] that takes alerts and delivers them later: Health
// says what is wrong with that, or nil.
type Reporter interface {
	Health() error
}

// TestQueue is the queue of test alerts.
const TestQueue = "test"

// Health is how a notifier is doing, or a part of what runs in the background.
type Health struct {
	Name        string    `json:"name"`
	Healthy     bool      `json:"healthy"`
	Failures    int       `json:"failures"` // in a row
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	Error       string    `json:"error,omitempty"`
	// Cause is what a store returned: the end of Error, which may name its address.
	Cause error `json:"-"`
}

// Alerter sends the alerts of a store. An alert is sent to every notifier, each
// until it has taken it: with waits that grow to ten minutes, for as long as it
// takes, since a lost alert is a lost letter. It is safe for concurrent use.
type Alerter struct {
	// Poll is how often alerts are looked for. Default 1 s. Set it before Run.
	Poll time.Duration

	store     Store
	notifiers []Notifier
	log       *slog.Logger

	looks, sends pulse.Part

	mu      sync.Mutex
	health  map[string]Health
	refused map[string]int64 // the latest alert that a notifier did not take
}

// A look each second is what an operator waits for at most. The lease is how
// long a sender that died keeps its alerts.
const (
	alertPoll    = time.Second
	alertLease   = time.Minute
	alertTimeout = 10 * time.Second
	alertMax     = 10 * time.Minute
	learnEvery   = 30 * time.Second
)

// NewAlerter returns an Alerter. Every alert is logged as an ERROR as well.
func NewAlerter(store Store, log *slog.Logger, notifiers ...Notifier) *Alerter {
	if log == nil {
		log = slog.Default()
	}
	a := &Alerter{store: store, log: log, notifiers: append([]Notifier{logNotifier{log}}, notifiers...), health: map[string]Health{}, refused: map[string]int64{}}
	// An alert that was sent and not noted is claimed again when its lease ends.
	a.looks.Name, a.sends.Name, a.sends.Every = "alerts not read", "alerts not sent or not recorded", alertLease
	for _, n := range a.notifiers {
		a.health[n.Name()] = Health{Name: n.Name(), Healthy: true}
	}
	return a
}

// Run sends alerts until ctx ends.
func (a *Alerter) Run(ctx context.Context) {
	learnt := time.Now()
	for ctx.Err() == nil {
		var list []Alert
		err := a.looks.Do(func() (err error) { list, err = a.store.ClaimAlerts(ctx, 20, alertLease); return err })
		if err != nil && ctx.Err() == nil {
			a.log.Warn("alerts not read", slog.String("error", err.Error()))
		}
		var wg sync.WaitGroup
		for _, alert := range list {
			wg.Go(func() { _ = a.sends.Do(func() error { return a.send(ctx, alert) }) })
		}
		wg.Wait()
		if time.Since(learnt) > learnEvery {
			a.learn(ctx)
			learnt = time.Now()
		}
		if len(list) == 0 {
			wait.Sleep(ctx, cmp.Or(a.Poll, alertPoll))
		}
	}
}

// send sends the alert to the notifiers that have not taken it yet, and
// writes back who has. The error is that of the write.
func (a *Alerter) send(ctx context.Context, alert Alert) error {
	var errs []error
	for _, n := range a.notifiers {
		if slices.Contains(alert.Sent, n.Name()) {
			continue
		}
		if err := a.notify(ctx, n, alert); err != nil {
			errs = append(errs, err)
			continue
		}
		alert.Sent = append(alert.Sent, n.Name())
	}
	alert.Tries++
	ceiling := min(time.Second<<min(alert.Tries, 10), alertMax)
	alert.Error = ""
	if err := errors.Join(errs...); err != nil {
		alert.Error = err.Error()
	}
	// Written even when the sender is being stopped.
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), alertTimeout)
	defer cancel()
	err := a.store.WriteBackAlert(done, alert, len(errs) == 0, wait.Jitter(ceiling))
	if err != nil {
		a.log.Warn("alert sent but not recorded: it will be sent again", slog.String("error", err.Error()))
	}
	return err
}

// notify calls one notifier within its time, and keeps its health.
func (a *Alerter) notify(ctx context.Context, n Notifier, alert Alert) error {
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	err := n.Notify(ctx, alert)
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.health[n.Name()]
	if err == nil {
		h.Healthy, h.Failures, h.Error, h.LastSuccess = true, 0, "", time.Now()
	} else {
		a.refused[n.Name()] = alert.ID
		h.Failures++
		h.Healthy, h.Error, h.LastFailure = false, err.Error(), time.Now()
		a.log.Error("alert not delivered", slog.String("notifier", n.Name()), slog.String("error", err.Error()))
	}
	a.health[n.Name()] = h
	return err
}

// learn makes those notifiers healthy that have taken by another process what they did not
// take by this one, which may have no other alert for them for days.
func (a *Alerter) learn(ctx context.Context) {
	a.mu.Lock()
	failing := slices.ContainsFunc(a.notifiers, func(n Notifier) bool { return !a.health[n.Name()].Healthy && a.refused[n.Name()] != 0 })
	a.mu.Unlock()
	if !failing {
		return
	}
	list, err := a.store.AlertPage(ctx, 0, 1000)
	if err != nil {
		return // alerts are not read either, which is said
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, alert := range list {
		for _, name := range alert.Sent {
			if h := a.health[name]; !h.Healthy && a.refused[name] == alert.ID {
				h.Healthy, h.Failures, h.Error = true, 0, ""
				a.health[name] = h
			}
		}
	}
}

// Test sends a test alert to every notifier, now, and returns how each took
// it.
func (a *Alerter) Test(ctx context.Context, by string) []Health {
	now := time.Now()
	alert := Alert{Queue: TestQueue, Reason: "test", Detail: "test alert, asked for by " + by, Count: 1, First: now, Last: now}
	for _, n := range a.notifiers {
		_ = a.notify(ctx, n, alert) // the health below has it
	}
	return a.Health()
}

// Health returns how each notifier is doing. None is healthy while alerts cannot be read:
// what is raised then reaches none of them.
func (a *Alerter) Health() []Health {
	own := pulse.First(&a.looks, &a.sends)
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]Health, 0, len(a.notifiers))
	for _, n := range a.notifiers {
		h := a.health[n.Name()]
		if r, ok := n.(Reporter); ok && h.Healthy {
			if err := r.Health(); err != nil {
				h.Healthy, h.Error = false, err.Error()
			}
		}
		if h.Healthy && !own.Healthy {
			h.Healthy, h.Error, h.Cause = false, own.Name+": "+own.Error, own.Cause
		}
		list = append(list, h)
	}
	return list
}

// logNotifier writes alerts to the log.
type logNotifier struct{ log *slog.Logger }

func (logNotifier) Name() string { return "log" }

func (n logNotifier) Notify(ctx context.Context, a Alert) error {
	n.log.LogAttrs(ctx, slog.LevelError, "alert", slog.String("queue", a.Queue), slog.String("reason", a.Reason), slog.Int("count", a.Count),
		slog.String("letter", a.Letter), slog.Time("first", a.First), slog.Time("last", a.Last))
	return nil
}
