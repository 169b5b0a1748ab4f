package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/policyfile"
)

// serveGateway serves a request by the gateway that is in charge when it arrives. A reload
// does not disturb the requests under way: none changes its policy halfway.
func (s *server) serveGateway(w http.ResponseWriter, r *http.Request) {
	s.gateway.Load().ServeHTTP(w, r)
}

// apply puts a policy file in charge, or changes nothing: whatever can fail
// comes before the gateway is replaced.
func (s *server) apply(file *policyfile.File) (err error) {
	routes, dependencies, err := s.routes(file)
	defer func() {
		if err != nil {
			closeUnused(dependencies, s.dependencies) // made for nothing
		}
	}()
	if err != nil {
		return err
	}
	if err = s.openRecords(file); err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{
		Options: []httpretry.Option{httpretry.WithBodyMemory(s.bodies)},
		Routes:  routes, TrustedProxies: file.Gateway.TrustedProxies, Logger: s.log, Ready: s.readiness.state, Wrap: s.watch.telemetry.wrap, Observe: s.watch.calls(file.Gateway.AccessLog),
	})
	if err != nil {
		return err
	}
	s.warnOfExposure(file)
	s.warnOfOwners(file)
	s.warnOfBodies(file)
	s.gateway.Store(g)
	s.watch.stats.SetUpstreams(upstreams(dependencies))
	closeUnused(s.dependencies, dependencies)
	if s.path != "" { // the sample's upstream has no /v1 of its own
		s.delivery.claims(file.Gateway.Routes, s.log)
	}
	s.file, s.dependencies = file, dependencies
	return nil
}

// routes makes the gateway's routes, and their dependencies. Several routes to one
// dependency share its budget and its breaker. The error joins the faults of all
// routes.
func (s *server) routes(file *policyfile.File) ([]gateway.Route, map[string]dependency, error) {
	dependencies := map[string]dependency{}
	var routes []gateway.Route
	var errs []error
	for _, r := range file.Gateway.Routes {
		route, err := s.route(file, r, dependencies)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		routes = append(routes, route)
	}
	return routes, dependencies, errors.Join(errs...)
}

// route makes one route, and its dependency unless that is among dependencies.
func (s *server) route(file *policyfile.File, r policyfile.Route, dependencies map[string]dependency) (gateway.Route, error) {
	dep, _ := file.Dependency(r.Dependency) // policyfile has checked that it is there
	target, err := url.Parse(dep.URL)
	if err != nil {
		// The parser's error repeats the URL, which may hold a password.
		return gateway.Route{}, fmt.Errorf("dependency %s: its url cannot be read", dep.Name)
	}
	d, made := dependencies[dep.Name]
	if !made {
		d, err = s.dependency(file, dep, target)
		dependencies[dep.Name] = d // after an error too: apply closes it
		if err != nil {
			return gateway.Route{}, err
		}
	}
	in, err := s.ingressOf(file, r)
	return gateway.Route{
		Prefix: r.Prefix, Host: r.Host, Target: target, Retryer: d.retryer, Transport: d.upstream, Ingress: in,
		Credentials: d.credentials, Override: dep.Credentials.Override, Methods: r.Methods, Headers: r.Headers,
		KeepPrefix: r.KeepPrefix || dep.Policy.Kind == forbear.GRPC, // whose paths are names
		Limits: gateway.Limits{
			Timeout: r.Timeout, MaxBody: int64(r.MaxBody), BodyLimit: int64(r.BodyLimit), MaxConcurrent: r.MaxConcurrent, Stream: r.Stream,
		},
	}, err
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
