package serve

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
)

// ingress is what the routes with idempotency keys have in common. Their records are
// in the database of the deliveries. Without such a route no database is opened for them.
//
// It needs no lock: run waits for the goroutine of reloads before it calls stop.
type ingress struct {
	records lateStore
	watched bool        // whether backlog is among the metrics
	spool   string      // the file of backlog, by its flag; "" is none
	former  atomic.Bool // the records may have some of an earlier version

	backlog *idempotency.Backlog // of all routes, across reloads; see kept
	run     context.Context      //nolint:containedctx // of serve: for what a reload starts
	cancel  context.CancelFunc
	own     *database.DB // opened here, where nothing is delivered
	sweeper sync.WaitGroup
}

// lateStore is set when the database is open: after the routes are built, and before the
// first request.
type lateStore struct{ idempotency.Store }

// Wakes implements idempotency.Waker if the store does.
func (l *lateStore) Wakes(ctx context.Context, wake func(key string)) {
	if w, ok := l.Store.(idempotency.Waker); ok {
		w.Wakes(ctx, wake)
	}
}

// register registers the flag of the routes with keys.
func (in *ingress) register(f *flag.FlagSet) {
	f.StringVar(&in.spool, "idempotency-spool", "", "a `file` that keeps outcomes of keyed requests while the database is down")
}

// kept returns the one backlog.
func (in *ingress) kept(log *slog.Logger) *idempotency.Backlog {
	if in.backlog == nil {
		in.backlog = &idempotency.Backlog{Store: &in.records, Logger: log}
	}
	return in.backlog
}

// startIngress opens the records when a route needs them, now or after a
// reload, until ctx ends.
func (s *server) startIngress(ctx context.Context) error {
	s.ingress.run, s.ingress.cancel = context.WithCancel(ctx)
	return s.openRecords(s.file)
}

// openRecords opens the records, once, when the file has a route that needs
// them. Before serve has begun it does nothing, and so does it afterwards: a
// reload may come in between ctx's end and the end of the process.
func (s *server) openRecords(file *policyfile.File) error {
	in := &s.ingress
	if in.run == nil || in.run.Err() != nil || in.records.Store != nil || !keyed(file) {
		return nil
	}
	// Records and deliveries share a database: on SQLite a second one would be a
	// second file for the operator to back up.
	db := s.delivery.database()
	if db == nil {
		var err error
		if db, err = s.delivery.openOwn(in.run, s.log); err != nil {
			return err
		}
		in.own = db
	}
	in.records.Store = db.Idempotency()
	in.former.Store(hasFormer(in.run, db, retentionOf(file), time.Now()))
	if err := s.openSpool(); err != nil {
		own := in.own
		if in.records.Store, in.own = nil, nil; own != nil {
			err = errors.Join(err, own.Close())
		}
		return err
	}
	if in.own != nil {
		s.readiness.follow(in.own, s.log)
	}
	s.watch.countKeys(db.Idempotency())
	in.sweeper.Go(func() { idempotency.RunSweeper(in.run, in.records.Store, s.log) })
	return nil
}

// openSpool opens the file of the backlog, where there is to be one, under the
// database's cipher.
func (s *server) openSpool() error {
	in := &s.ingress
	if in.spool == "" || in.backlog == nil {
		return nil
	}
	c, err := s.delivery.keys.Cipher()
	if err == nil {
		err = in.backlog.Spool(idempotency.SpoolOptions{Path: in.spool, Cipher: c})
	}
	if err != nil {
		return fmt.Errorf("--idempotency-spool: %w", err)
	}
	return nil
}

// flushTime bounds what the end of the process waits for a database that is down.
const flushTime = 3 * time.Second

// stop ends the sweeper, writes the outcomes in the backlog to the store, and closes a
// database that was opened here.
func (in *ingress) stop() error {
	if in.cancel != nil {
		in.cancel()
	}
	in.sweeper.Wait()
	if in.backlog != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		in.backlog.Close(ctx)
	}
	if in.own == nil {
		return nil
	}
	return in.own.Close()
}

// ingressOf returns what a route of the file says about keys, or nil. The store
// is the same for all routes; a key is valid at its own.
func (s *server) ingressOf(file *policyfile.File, r policyfile.Route) (*gateway.Ingress, error) {
	in := r.Idempotency
	if !in.On {
		return nil, nil
	}
	scope, err := scopeOf(file, in.Principal)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", in.At, err)
	}
	return &gateway.Ingress{
		Store: &s.ingress.records, Timeout: in.Timeout,
		Options: idempotency.Options{
			Scope: scope, Former: s.ingress.formerScope(file, r), Optional: in.Optional, Retention: in.Retention, Wait: in.Wait, MaxRequest: int64(in.MaxRequest), MaxResponse: int64(in.MaxResponse),
			Rerun: in.Rerunnable, Backlog: s.ingress.kept(s.log), Logger: s.log, Observe: s.countKeyed(r.Dependency),
		},
	}, nil
}

// allCallers is the principal of all callers of a route, where they are one. No caller
// can be called that: the value of a header does not begin with a space, nor does what
// [gateway.JWT] returns.
const allCallers = " all"

// scopeOf returns the function that finds the caller: the keys of one caller
// must not reach the records of another. Files of keys are beside the policy
// file, unless their path says otherwise.
func scopeOf(file *policyfile.File, p policyfile.Principal) (func(*http.Request) (string, error), error) {
	switch {
	case p.Single:
		return func(*http.Request) (string, error) { return allCallers, nil }, nil
	case p.JWT == (policyfile.JWT{}):
		name := cmp.Or(p.Header, policyfile.DefaultPrincipal)
		if len(file.Gateway.TrustedProxies) > 0 {
			return gateway.PrincipalHeaderFrom(name, file.Gateway.Trusts), nil
		}
		return gateway.PrincipalHeader(name), nil
	}
	path := beside(file, p.JWT.Keys)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("jwt.keys: %w", err)
	}
	keys, err := gateway.ReadKeys(data)
	if err != nil {
		return nil, fmt.Errorf("jwt.keys: %s: %w", path, err)
	}
	return gateway.JWT{Claim: cmp.Or(p.JWT.Claim, "sub"), Keys: keys, Issuer: p.JWT.Issuer, Audience: p.JWT.Audience, Leeway: p.JWT.Leeway}.Principal, nil
}

// countKeyed returns an observer of the keyed requests of a dependency, for all exporters.
func (s *server) countKeyed(dependency string) func(idempotency.Event) {
	var all []func(idempotency.Event)
	if m := s.watch.metrics; m != nil {
		all = append(all, m.Idempotency(dependency))
	}
	if t := s.watch.telemetry; t != nil {
		all = append(all, t.observer.Idempotency(dependency))
	}
	if in := &s.ingress; s.watch.registry != nil && !in.watched {
		in.watched = true
		backlog := in.kept(s.log)
		s.watch.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "idempotency_outcomes_waiting", Help: "Outcomes of keyed requests that wait in this process for the database.",
		}, func() float64 { return float64(backlog.Stats().Waiting) }))
	}
	return func(e idempotency.Event) {
		for _, observe := range all {
			observe(e)
		}
	}
}

// countKeys exports the number of records that wait for an operator.
func (w *watch) countKeys(store idempotency.Counter) {
	if w.metrics != nil {
		w.metrics.Keys(store)
	}
	if w.telemetry != nil {
		w.telemetry.observer.Keys(store)
	}
}
