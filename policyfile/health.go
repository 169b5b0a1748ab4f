package policyfile

import (
	"time"

	"go.yaml.in/yaml/v4"
)

// Probe says where a dependency reports its own health. In a file it stands in
// the section health, beside the limits of the policy. It belongs to the
// dependency and not to its policy: the gateway asks the endpoint, and a Retryer
// sends nothing by itself. The zero value asks nothing.
type Probe struct {
	Endpoint string `json:"endpoint,omitzero"`
	// Interval is the mean time between two questions; zero leaves it to
	// package probe.
	Interval time.Duration `json:"interval,omitzero"`
}

// probe reads the section of a dependency, which may name an endpoint.
func (r *policyReader) probe(n *yaml.Node, dep *Dependency) {
	p := &dep.Probe
	r.section(n, "health", &r.policy.Health, fields{
		"endpoint": func(v *yaml.Node) { r.url(v, "health.endpoint", dependencyURL, r.owner, &p.Endpoint) },
		"interval": func(v *yaml.Node) { r.duration(v, "health.interval", &p.Interval) },
	})
	// The limits are judged with the rest of the policy; no policy has these two.
	if p.Interval > 0 && p.Endpoint == "" {
		r.Fault(n, "health has an interval without an endpoint")
	}
}
