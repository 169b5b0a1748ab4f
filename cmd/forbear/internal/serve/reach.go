package serve

import (
	"cmp"
	"net"
	"net/url"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/policyfile"
)

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
	if k := s.kept[dep.Name]; k.upstream != nil && reflect.DeepEqual(k.reach, c) {
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

// closeUnused closes what a dependency of before kept and none of now keeps: its
// connections, and its part in a shared budget. Calls that are still under way go on.
func closeUnused(before, now map[string]kept) {
	for name, k := range before {
		if k.upstream != nil && k.upstream != now[name].upstream {
			k.upstream.Close()
		}
		if k.shared != nil && k.shared != now[name].shared {
			_ = k.shared.Close()
		}
	}
}

// upstreams returns the connections of all dependencies.
func upstreams(of map[string]kept) map[string]*upstream.Upstream {
	found := make(map[string]*upstream.Upstream, len(of))
	for name, k := range of {
		found[name] = k.upstream
	}
	return found
}

// endpointGauges are the addresses of the dependencies that have several, for
// Prometheus. They are read when a scrape asks: an address is left out by the calls
// that failed there.
type endpointGauges struct {
	service  string
	statuses func() map[string][]upstream.EndpointStatus
}

var (
	endpointsAll = prometheus.NewDesc("upstream_endpoints",
		"Addresses of a dependency that the gateway connects to.", []string{"service", "dependency"}, nil)
	endpointsOut = prometheus.NewDesc("upstream_endpoints_left_out",
		"Those of them that are left out for a while, because they fail and others do not.", []string{"service", "dependency"}, nil)
)

// Describe implements [prometheus.Collector].
func (g endpointGauges) Describe(to chan<- *prometheus.Desc) {
	to <- endpointsAll
	to <- endpointsOut
}

// Collect implements [prometheus.Collector].
func (g endpointGauges) Collect(to chan<- prometheus.Metric) {
	for dependency, endpoints := range g.statuses() {
		if len(endpoints) == 0 {
			continue
		}
		out := 0
		for _, e := range endpoints {
			if !e.In {
				out++
			}
		}
		to <- prometheus.MustNewConstMetric(endpointsAll, prometheus.GaugeValue, float64(len(endpoints)), g.service, dependency)
		to <- prometheus.MustNewConstMetric(endpointsOut, prometheus.GaugeValue, float64(out), g.service, dependency)
	}
}
