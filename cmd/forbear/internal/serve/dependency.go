package serve

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/health/probe"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/policyfile"
)

// dependency is what the gateway holds for one dependency, and what that was made from. It
// stays across a reload as far as the policy file says the same: a new Retryer would forget
// an outage, and grant a fresh floor of retries in the middle of it.
type dependency struct {
	retryer *forbear.Retryer
	shared  *budget.Fleet // its budget, where the processes of the service share one
	prober  *prober       // nil where the policy file names no health endpoint
	from    retryerInput

	credentials *credential.Cache // nil where the policy file names none
	source      policyfile.Credentials

	pacer *pace.Pacer // nil where the policy file switches it off

	upstream *upstream.Upstream // its connections
	reach    upstream.Config
}

// retryerInput is all of a policy file that goes into one Retryer.
type retryerInput struct {
	policy  forbear.Policy
	waivers []policyfile.Waiver
	service string
	noLogs  bool
	probe   endpoint
	pace    policyfile.Pace
}

// dependency makes a dependency, of the parts that are there as far as nothing that they
// were made from has changed.
func (s *server) dependency(file *policyfile.File, dep policyfile.Dependency, target *url.URL) (d dependency, err error) {
	d.pacer = s.pacer(dep)
	// Credentials and TLS may name files that are missing: one run shows all of them.
	var missing error
	d.credentials, missing = s.credentials(dep)
	d.source = dep.Credentials
	if err = s.retryer(file, dep, &d); err == nil {
		d.upstream, d.reach, err = s.upstream(file, dep, target)
	}
	return d, errors.Join(missing, err)
}

// retryer fills in the Retryer of a dependency: the one that there is, when nothing
// that it was built from has changed.
func (s *server) retryer(file *policyfile.File, dep policyfile.Dependency, d *dependency) error {
	d.from = retryerInput{dep.Policy, file.Waivers, file.Service, file.Observability.NoLogs, endpointOf(dep), dep.Pace}
	if old, ok := s.dependencies[dep.Name]; ok && reflect.DeepEqual(old.from, d.from) {
		d.retryer, d.shared, d.prober = old.retryer, old.shared, old.prober
		return nil
	}
	opts := slices.Concat(file.Options(), s.watch.options())
	var err error
	if d.shared, err = s.fleet.budget(s.log, file.Service, dep); err != nil {
		return err
	} else if d.shared != nil {
		opts = append(opts, forbear.WithBudget(d.shared))
	}
	if d.prober, err = s.prober(file, dep, d.from.probe); err != nil {
		return err
	} else if d.prober != nil {
		opts = append(opts, forbear.WithHealthGate(d.prober.Healthy))
	}
	if d.pacer != nil {
		opts = append(opts, forbear.WithPacer(d.pacer))
	}
	d.retryer, err = forbear.New(dep.Name, dep.Policy, opts...)
	return err
}

// endpoint is a health endpoint. The zero value is none.
type endpoint struct {
	policyfile.Probe
	tls policyfile.TLS // of the dependency, since the endpoint is its own
}

// endpointOf returns the health endpoint of a dependency.
func endpointOf(dep policyfile.Dependency) endpoint {
	if dep.Probe.Endpoint == "" {
		return endpoint{}
	}
	return endpoint{dep.Probe, dep.TLS}
}

// prober asks a health endpoint, over connections of its own.
type prober struct {
	*probe.Prober
	over *upstream.Upstream
}

// Close ends both.
func (p *prober) Close() {
	p.Prober.Close()
	p.over.Close()
}

// prober returns what asks the health endpoint of a dependency, nil for one that names
// none. The one that there is stays, with what it has learned. Of how the dependency is
// reached, its TLS alone is the endpoint's: that may be another port, and another host.
func (s *server) prober(file *policyfile.File, dep policyfile.Dependency, e endpoint) (*prober, error) {
	if e == (endpoint{}) {
		return nil, nil
	}
	if k := s.dependencies[dep.Name]; k.prober != nil && k.from.probe == e {
		return k.prober, nil
	}
	log := s.logOf(dep)
	over, err := upstream.New(upstream.Config{Connect: dep.Policy.Connect, TLS: reachTLS(file, dep.TLS), Logger: log})
	if err != nil {
		return nil, of("dependency "+dep.Name, err)
	}
	started, err := probe.Start(probe.Config{URL: e.Endpoint, Interval: e.Interval, Transport: over, Logger: log})
	if err != nil {
		over.Close()
		return nil, fmt.Errorf("dependency %s: %w", dep.Name, err)
	}
	return &prober{started, over}, nil
}

// pacer returns what paces the sends to a dependency: the one that there is, since what
// it has learned is the dependency's and not the policy's. It is nil where the policy
// file switches it off.
func (s *server) pacer(dep policyfile.Dependency) *pace.Pacer {
	if dep.Pace == policyfile.PaceOff {
		return nil
	}
	if k := s.dependencies[dep.Name]; k.pacer != nil {
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
	if k := s.dependencies[dep.Name]; k.credentials != nil && reflect.DeepEqual(k.source, c) {
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
		return nil, of(fmt.Sprintf("%s: credentials of %s", dep.At, dep.Name), err)
	}
	return made, nil
}

// reach says how a dependency is reached, as its policy file has it.
func reach(file *policyfile.File, dep policyfile.Dependency, target *url.URL) upstream.Config {
	c := upstream.Config{
		Connect: dep.Policy.Connect, MaxAge: dep.ConnectionAge, Endpoints: dep.Endpoints.Addresses,
		TLS: reachTLS(file, dep.TLS), HTTP2: upstream.HTTP2(dep.HTTP2),
	}
	if dep.Policy.Kind == forbear.GRPC {
		c.HTTP2 = upstream.HTTP2Only // gRPC knows nothing else
	}
	if dep.Endpoints.DNS {
		port := cmp.Or(target.Port(), "443")
		if target.Port() == "" && target.Scheme == "http" {
			port = "80"
		}
		c.DNS = net.JoinHostPort(target.Hostname(), port)
	}
	return c
}

// upstream returns the connections to a dependency. They stay across a reload that
// does not change how it is reached.
func (s *server) upstream(file *policyfile.File, dep policyfile.Dependency, target *url.URL) (*upstream.Upstream, upstream.Config, error) {
	c := reach(file, dep, target)
	if k := s.dependencies[dep.Name]; k.upstream != nil && reflect.DeepEqual(k.reach, c) {
		return k.upstream, c, nil
	}
	logged := c // what is compared has no logger: each call makes another
	logged.Logger = s.logOf(dep)
	u, err := upstream.New(logged)
	if err != nil {
		err = of("dependency "+dep.Name, err)
	}
	return u, c, err
}

// closeUnused closes the connections, the probers and the parts in shared budgets that
// former dependencies have and present ones do not. Calls that are under way go on.
func closeUnused(before, now map[string]dependency) {
	for name, k := range before {
		if k.upstream != nil && k.upstream != now[name].upstream {
			k.upstream.Close()
		}
		if k.prober != nil && k.prober != now[name].prober {
			k.prober.Close()
		}
		if k.shared != nil && k.shared != now[name].shared {
			_ = k.shared.Close()
		}
	}
}

// upstreams returns the connections of all dependencies.
func upstreams(of map[string]dependency) map[string]*upstream.Upstream {
	found := make(map[string]*upstream.Upstream, len(of))
	for name, k := range of {
		found[name] = k.upstream
	}
	return found
}

// reachTLS returns how a dependency of the file proves who it is, and the gateway to it.
func reachTLS(file *policyfile.File, t policyfile.TLS) upstream.TLS {
	return upstream.TLS{
		CA: beside(file, t.CA), Cert: beside(file, t.Cert), Key: beside(file, t.Key),
		ServerName: t.ServerName, MinVersion: tlsVersion(t.MinVersion),
	}
}

// logOf returns the log of what is about one dependency.
func (s *server) logOf(dep policyfile.Dependency) *slog.Logger {
	return s.log.With(slog.String("dependency", dep.Name))
}
