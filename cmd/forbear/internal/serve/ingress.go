package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
)

// ingress is what the routes with idempotency keys have in common. Their
// records are in the database of the deliveries. A gateway without such a route
// opens no database for them.
type ingress struct {
	records  lateStore
	requests *prometheus.CounterVec

	mu      sync.Mutex
	run     context.Context //nolint:containedctx // of serve: for what a reload starts
	cancel  context.CancelFunc
	own     *database.DB // opened here, where nothing is delivered
	sweeper sync.WaitGroup
}

// lateStore is filled in after the routes are built, which comes before the
// database is opened, and before the first request.
type lateStore struct{ idempotency.Store }

// startIngress opens the records when a route needs them, now or after a
// reload, until ctx ends.
func (s *server) startIngress(ctx context.Context) error {
	s.ingress.mu.Lock()
	s.ingress.run, s.ingress.cancel = context.WithCancel(ctx)
	s.ingress.mu.Unlock()
	return s.openRecords(s.file)
}

// openRecords opens the records, once, when the file has a route that needs
// them. Before serve has begun it does nothing, and so does it afterwards: a
// reload may come in between ctx's end and the end of the process.
func (s *server) openRecords(file *policyfile.File) error {
	in := &s.ingress
	in.mu.Lock()
	defer in.mu.Unlock()
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
	in.sweeper.Go(func() { idempotency.RunSweeper(in.run, in.records.Store, s.log) })
	return nil
}

// stop ends the sweeper and closes what was opened here. A process that another one
// has replaced has no other end to wait for.
func (in *ingress) stop() error {
	in.mu.Lock()
	if in.cancel != nil {
		in.cancel()
	}
	in.mu.Unlock()
	in.sweeper.Wait()
	if in.own == nil {
		return nil
	}
	return in.own.Close()
}

// ingressOf returns what a route of the file says about keys, or nil. The store
// is the same for all routes, so that a key means one request of a caller
// however it arrives.
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

// scopeOf returns the function that finds the caller: the keys of one caller
// must not reach the records of another. Files of keys are beside the policy
// file, unless their path says otherwise.
func scopeOf(file *policyfile.File, p policyfile.Principal) (func(*http.Request) (string, error), error) {
	switch {
	case p.Single:
		return idempotency.SingleTenant(), nil
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

// countKeyed counts what becomes of the keyed requests of a dependency. The
// counter is registered with the first such route: a gateway without one shows
// no metric that stays at zero.
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
