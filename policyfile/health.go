package policyfile

import (
	"maps"
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/health"
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

// healthSchema is the schema of the section, of a profile or, with an endpoint,
// of a dependency.
func healthSchema(endpoint bool) object {
	p := properties(reflect.TypeFor[health.Policy]())
	if endpoint {
		maps.Copy(p, properties(reflect.TypeFor[Probe]()))
		p["endpoint"] = env("asked by the gateway: a response other than 2xx, twice in a row, stops retries; or {env: NAME}")
		p["interval"].(object)["description"] = "the mean time between two questions, such as 5s, which is the default"
	}
	return described(p, map[string]string{
		"min_success": "retries stop below this share of good attempts, such as 50% or 0.5, when it is certain to 99.9 %; no limit unless said",
		"window":      "how far back attempts count, such as 60s, which is the default",
		"min_calls":   "attempts in the window before their share counts; 20 unless said otherwise",
	})
}
