package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/policyfile"
)

// live is the gateway of the moment. A reload replaces it; a request stays with
// the one that it met, so that no call changes its policy halfway. The zero
// value has no gateway and serves nothing: configure sets one before run.
type live struct {
	mu       sync.RWMutex
	gateway  *gateway.Gateway
	serving  bool // its listeners are open to callers
	draining bool

	store atomic.Pointer[database.DB] // nil: nothing is stored
}

// stored says whether the database takes what callers are to be told is stored.
func (l *live) stored() (state string, ok bool) {
	db := l.store.Load()
	if db == nil {
		return "ok", true
	}
	return db.Ready()
}

// follow makes readiness depend on a database, until that is closed.
func (l *live) follow(db *database.DB, log *slog.Logger) {
	db.Watch(log)
	l.store.Store(db)
}

// serve makes the process ready: see ready.
func (l *live) serve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving = true
}

// ready says whether callers should be sent here, and why not. The address that asks is
// open before the database is, and to the very end.
func (l *live) ready() (state string, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.draining:
		return "draining", false
	case !l.serving:
		return "starting", false
	default:
		return l.stored()
	}
}

// ServeHTTP serves a request by the gateway that is there when it comes: a reload
// does not disturb the requests under way.
func (l *live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.RLock()
	g := l.gateway
	l.mu.RUnlock()
	g.ServeHTTP(w, r)
}

// set puts a gateway in charge. A reload during the shutdown must not make the
// process look ready again.
func (l *live) set(g *gateway.Gateway) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		g.Drain()
	}
	l.gateway = g
}

// drain makes this gateway, and any that follows it, report that it is not
// ready. It goes on serving.
func (l *live) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.gateway.Drain()
}

// kept is what a dependency keeps across reloads, and what it was made from. A
// Retryer holds the budget and the breaker: a new one would forget an outage,
// and grant a fresh floor of retries in the middle of it.
type kept struct {
	retryer *forbear.Retryer
	shared  *budget.Fleet // its budget, where the processes of the service share one
	from    retryerInput

	credentials *credential.Cache // nil where the policy file names none
	source      policyfile.Credentials

	pacer *pace.Pacer // nil where the policy file switches it off

	upstream *upstream.Upstream // its connections
	reach    upstream.Config
}

// retryerInput is all of a policy file that goes into one Retryer. Two inputs that
// are equal share one Retryer across a reload.
type retryerInput struct {
	policy  forbear.Policy
	waivers []policyfile.Waiver
	service string
	noLogs  bool
	probe   endpoint
	pace    policyfile.Pace
}

// apply puts a policy file in charge, or changes nothing: whatever can fail
// comes before the gateway is replaced.
func (s *server) apply(file *policyfile.File) (err error) {
	defer func() { s.probes.retain(s.kept) }()
	routes, retryers, err := s.routes(file)
	defer func() {
		if err != nil {
			closeUnused(retryers, s.kept) // what was made for nothing
		}
	}()
	if err != nil {
		return err
	}
	if err = s.openRecords(file); err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{
		Routes: routes, TrustedProxies: file.Gateway.TrustedProxies, Logger: s.log, Ready: s.live.stored, Wrap: s.watch.telemetry.wrap, Observe: s.watch.calls(file.Gateway.AccessLog),
	})
	if err != nil {
		return err
	}
	s.exposed(file)
	s.unretried(file)
	s.live.set(g)
	s.watch.stats.SetUpstreams(upstreams(retryers))
	closeUnused(s.kept, retryers)
	if s.path != "" { // the sample's upstream has no /v1 of its own
		s.delivery.claims(file.Gateway.Routes, s.log)
	}
	s.file, s.kept = file, retryers
	return nil
}

// unretried logs which dependencies get a single attempt because another service is to
// retry their calls: the policy says so in one word, and a caller sees it when a
// call has failed.
func (s *server) unretried(file *policyfile.File) {
	for _, dep := range file.Dependencies {
		if owner := dep.Policy.Owner; owner != "" && file.Service != "" && owner != file.Service {
			s.log.Warn("calls of a dependency are not retried here: owner names another service than service",
				slog.String("dependency", dep.Name), slog.String("owner", owner), slog.String("service", file.Service))
		}
	}
}

// routes builds the gateway's routes and one Retryer for each dependency, which
// its routes share: the dependency's budget is one, however many ways lead to
// it. The error joins the faults of all routes.
func (s *server) routes(file *policyfile.File) ([]gateway.Route, map[string]kept, error) {
	retryers := map[string]kept{}
	var routes []gateway.Route
	var errs []error
	for _, r := range file.Gateway.Routes {
		route, err := s.route(file, r, retryers)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		routes = append(routes, route)
	}
	return routes, retryers, errors.Join(errs...)
}

// route builds one route, and its dependency's Retryer unless retryers has it.
// Several routes to one dependency share its budget and its breaker, as R-7 has it
// for the whole dependency.
func (s *server) route(file *policyfile.File, r policyfile.Route, retryers map[string]kept) (gateway.Route, error) {
	dep, _ := file.Dependency(r.Dependency) // policyfile has checked that it is there
	target, err := url.Parse(dep.URL)
	if err != nil {
		// The parser's error repeats the URL, which may hold a password.
		return gateway.Route{}, fmt.Errorf("dependency %s: its url cannot be read", dep.Name)
	}
	k, built := retryers[dep.Name]
	if !built {
		k, err = s.keep(file, dep, target)
		retryers[dep.Name] = k // after an error too: apply closes it
		if err != nil {
			return gateway.Route{}, err
		}
	}
	in, err := s.ingressOf(file, r)
	return gateway.Route{
		Prefix: r.Prefix, Host: r.Host, Target: target, Retryer: k.retryer, Transport: k.upstream, Ingress: in,
		Credentials: k.credentials, Override: dep.Credentials.Override, Methods: r.Methods, Headers: r.Headers,
		KeepPrefix: r.KeepPrefix || dep.Policy.Kind == forbear.GRPC, // whose paths are names
		Limits: gateway.Limits{
			Timeout: r.Timeout, MaxBody: int64(r.MaxBody), MaxConcurrent: r.MaxConcurrent, Stream: r.Stream,
		},
	}, err
}

// keep returns what a dependency keeps: what there is of it, as far as nothing that
// it was made from has changed.
func (s *server) keep(file *policyfile.File, dep policyfile.Dependency, target *url.URL) (k kept, err error) {
	k.pacer = s.pacer(dep)
	// What reads files that the policy names may find them missing: one run shows all.
	var missing error
	k.credentials, missing = s.credentials(dep)
	k.source = dep.Credentials
	if err = s.retryer(file, dep, &k); err == nil {
		k.upstream, k.reach, err = s.upstream(file, dep, target)
	}
	return k, errors.Join(missing, err)
}

// of says whose fault err is, on each line where errors.Join has made a list of it.
func of(operand string, err error) error {
	list, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(list.Unwrap()...).Error() {
		return fmt.Errorf("%s: %w", operand, err)
	}
	errs := slices.Clone(list.Unwrap())
	for i, e := range errs {
		errs[i] = of(operand, e)
	}
	return errors.Join(errs...)
}

// retryer fills in the Retryer of a dependency: the one that there is, when nothing
// that it was built from has changed.
func (s *server) retryer(file *policyfile.File, dep policyfile.Dependency, k *kept) error {
	k.from = retryerInput{dep.Policy, file.Waivers, file.Service, file.Observability.NoLogs, endpointOf(dep), dep.Pace}
	if old, ok := s.kept[dep.Name]; ok && reflect.DeepEqual(old.from, k.from) {
		k.retryer, k.shared = old.retryer, old.shared
		return nil
	}
	opts := slices.Concat(file.Options(), s.watch.options())
	var err error
	if k.shared, err = s.fleet.budget(s.log, file.Service, dep); err != nil {
		return err
	} else if k.shared != nil {
		opts = append(opts, forbear.WithBudget(k.shared))
	}
	if p, err := s.probes.of(dep, upstream.Config{Connect: dep.Policy.Connect, TLS: reachTLS(file, dep.TLS)}, s.logOf(dep)); err != nil {
		return err
	} else if p != nil {
		opts = append(opts, forbear.WithHealthGate(p.Healthy))
	}
	if k.pacer != nil {
		opts = append(opts, forbear.WithPacer(k.pacer))
	}
	k.retryer, err = forbear.New(dep.Name, dep.Policy, opts...)
	return err
}

// pacer returns what paces the sends to a dependency: the one that there is, since what
// it has learned is the dependency's and not the policy's. It is nil where the policy
// file switches it off.
func (s *server) pacer(dep policyfile.Dependency) *pace.Pacer {
	if dep.Pace == policyfile.PaceOff {
		return nil
	}
	if k := s.kept[dep.Name]; k.pacer != nil {
		return k.pacer
	}
	return &pace.Pacer{}
}

// credentials returns what the policy file names for a dependency, or nil. The
// present ones stay, with their token, while the file says the same of them: a
// reload must not send every process to the token endpoint at once.
func (s *server) credentials(dep policyfile.Dependency) (*credential.Cache, error) {
	c := dep.Credentials
	if reflect.ValueOf(c).IsZero() {
		return nil, nil
	}
	if k := s.kept[dep.Name]; k.credentials != nil && reflect.DeepEqual(k.source, c) {
		return k.credentials, nil
	}
	made, err := gateway.CredentialSource{
		Secret:       gateway.Reference(c.Secret),
		TokenURL:     c.TokenURL,
		ClientID:     c.ClientID,
		ClientSecret: gateway.Reference(c.ClientSecret),
		Scopes:       c.Scopes,
		Connect:      dep.Policy.Connect,
	}.Credentials()
	if err != nil {
		return nil, of("dependency "+dep.Name, err)
	}
	return made, nil
}
