package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
)

// ingress is what the routes with idempotency keys have in common. Their
// records are in the database of the deliveries.
type ingress struct {
	records  lateStore
	requests *prometheus.CounterVec

	mu      sync.Mutex
	run     context.Context //nolint:containedctx // of serve: for what a reload starts
	own     *database.DB    // opened here, where nothing is delivered
	sweeper sync.WaitGroup
}

// lateStore is filled in after the routes are built, which comes before the
// database is opened, and before the first request.
type lateStore struct{ idempotency.Store }

// startIngress opens the records when a route needs them, now or after a
// reload, until ctx ends.
func (s *server) startIngress(ctx context.Context) error {
	s.ingress.mu.Lock()
	s.ingress.run = ctx
	s.ingress.mu.Unlock()
	return s.openRecords(s.file)
}

// openRecords opens the records, once, when the file has a route that needs
// them. Before serve has begun it does nothing.
func (s *server) openRecords(file *policyfile.File) error {
	in := &s.ingress
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.run == nil || in.run.Err() != nil || in.records.Store != nil || !keyed(file) {
		return nil
	}
	db := s.delivery.database()
	if db == nil {
		var err error
		if db, err = s.delivery.openOwn(in.run); err != nil {
			return err
		}
		in.own = db
	}
	in.records.Store = db.Idempotency()
	in.sweeper.Go(func() { idempotency.RunSweeper(in.run, in.records.Store, s.log) })
	return nil
}

// keyed reports whether a route of the file honors keys.
func keyed(file *policyfile.File) bool {
	for _, r := range file.Gateway.Routes {
		if r.Idempotency.On {
			return true
		}
	}
	return false
}

// stop waits for the sweeper, which ends with serve's context, and closes what
// was opened here.
func (in *ingress) stop() error {
	in.sweeper.Wait()
	if in.own == nil {
		return nil
	}
	return in.own.Close()
}

// database returns that of the deliveries, or nil where there are none.
func (d *delivery) database() *database.DB {
	if d.service == nil {
		return nil
	}
	return d.service.DB
}

// openOwn opens the database that deliveries would be kept in.
func (d *delivery) openOwn(ctx context.Context) (*database.DB, error) {
	keys, err := d.keys()
	if err != nil {
		return nil, err
	}
	var opts []sqlstore.Option
	if len(keys) > 0 {
		c, err := sqlstore.NewCipher(keys...)
		if err != nil {
			return nil, err
		}
		opts = append(opts, sqlstore.WithCipher(c))
	}
	db, err := database.Open(ctx, d.options.Database, opts...)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("database schema: %w", err), db.Close())
	}
	return db, nil
}

// ingressOf returns what a route of the file says about keys, or nil.
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
			Scope: scope, Optional: in.Optional, Retention: in.Retention, Wait: in.Wait, MaxRequest: int64(in.MaxRequest), MaxResponse: int64(in.MaxResponse),
			Rerun: in.Rerunnable, Logger: s.log, Observe: s.countKeyed(r.Dependency),
		},
	}, nil
}

// scopeOf returns the function that finds the caller. Files of keys are beside
// the policy file, unless their path says otherwise.
func scopeOf(file *policyfile.File, p policyfile.Principal) (func(*http.Request) (string, error), error) {
	switch {
	case p.Single:
		return idempotency.SingleTenant(), nil
	case p.JWT == (policyfile.JWT{}):
		return gateway.PrincipalHeader(cmp.Or(p.Header, policyfile.DefaultPrincipal)), nil
	}
	path := p.JWT.Keys
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file.Name), path)
	}
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

// countKeyed counts what becomes of the keyed requests of a dependency.
func (s *server) countKeyed(dependency string) func(idempotency.Event) {
	if s.watch.registry == nil {
		return nil
	}
	in := &s.ingress
	if in.requests == nil {
		in.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idempotency_requests_total", Help: "Requests to routes with idempotency keys, by what became of them.",
		}, []string{"dependency", "result"})
		s.watch.registry.MustRegister(in.requests)
	}
	return func(e idempotency.Event) { in.requests.WithLabelValues(dependency, string(e.Result)).Inc() }
}
