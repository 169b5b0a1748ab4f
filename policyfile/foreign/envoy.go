package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile/internal/tree"

	"github.com/forbear-go/forbear/policyfile"
)

// The defaults of Envoy's route and of its RetryPolicy. A file that leaves a
// field out gets these, and is judged by them.
const (
	envoyTimeout = 15 * time.Second
	envoyBase    = 25 * time.Millisecond
	envoyRetries = 1
	envoyPercent = 20.0
)

// claimsEnvoy knows the parts of Envoy's configuration by the keys that they cannot
// do without: a bootstrap, a dump, resources of xDS, or a cluster by itself.
func claimsEnvoy(n *tree.Node) bool {
	of := func(kind string) bool {
		return strings.HasPrefix(n.Get("@type").Text(), "type.googleapis.com/envoy."+kind)
	}
	switch {
	case of("config."), of("admin."), of("extensions."), of("api."):
		return true
	case n.Get("static_resources").Map(), n.Path("dynamic_route_configs") != nil, n.Path("static_route_configs") != nil:
		return true
	case n.Path("virtual_hosts") != nil && n.Path("virtual_hosts").Kind == tree.List, n.Path("filter_chains").List() != nil:
		return true
	case n.Has("name") && (n.Path("load_assignment").Map() || n.Path("eds_cluster_config").Map() || n.Has("name") && n.Path("connect_timeout") != nil && n.Path("lb_policy") != nil):
		return true
	}
	return n.Get("apiVersion").Text() != "" && n.Get("kind").Text() == "EnvoyFilter"
}

// envoy reads routes and clusters, wherever in the file they are: a
// bootstrap, or a dump of one of its parts. Envoy draws its waits with full
// jitter, as R-1 asks, so that jitter needs no finding.
//
// Clusters are gathered first, because a route names one that may stand
// below it, or in another file.
func (r *reader) envoy() {
	clusters := named{}
	for _, part := range r.parts {
		part.Root.Walk(func(n *tree.Node) bool {
			if n.Has("name") && (n.Path("load_assignment") != nil || n.Path("connect_timeout") != nil || n.Path("circuit_breakers") != nil || n.Path("eds_cluster_config") != nil) {
				clusters.add(n.Get("name").Text(), n)
			}
			for _, c := range n.Get("clusters").List() {
				if name := c.Get("name").Text(); name != "" && !slices.Contains(clusters[name], c) {
					clusters.add(name, c)
				}
			}
			return true
		})
	}
	for _, part := range r.parts {
		part.Root.Walk(func(n *tree.Node) bool {
			for _, host := range n.Path("virtual_hosts").List() {
				// A route without a policy of its own inherits that of
				// its virtual host.
				inherited := host.Path("retry_policy")
				for _, route := range host.Get("routes").List() {
					r.envoyRoute(route, inherited, clusters)
				}
			}
			return true
		})
	}
}

// envoyRoute reads one route that retries.
func (r *reader) envoyRoute(n, inherited *tree.Node, clusters named) {
	action := n.Get("route")
	policy := cmp.Or(action.Path("retry_policy"), inherited)
	on := policy.Path("retry_on")
	if action == nil || policy == nil || on.Text() == "" {
		return // without retry_on Envoy does not retry
	}
	// One finding speaks for the route: its cluster is chosen at run time,
	// by a header or by weight.
	name := action.Get("cluster").Text()
	if name == "" {
		name = "unnamed"
		r.unjudged(action.At, "", "a route whose cluster is not named here retries")
	}
	// A cluster is a dependency: routes to the same one give several
	// findings, each with its own line.
	d := policyfile.Dependency{Name: name, At: policy.At, Protocol: "http"}
	// The place is that of the figure which a reader would change, or of
	// the policy without it.
	count, place := envoyRetries, policy.At
	if v := policy.Path("num_retries"); v != nil {
		if m, ok := v.Number(); ok {
			count, place = int(m), v.At
		}
	}
	retries(&d, count, place)
	r.envoyTimes(&d, action, policy)
	r.conditions(&d, on, policy.Path("retriable_status_codes"), methodBound(n))
	cluster, several := clusters.in(d.At.File, name)
	r.envoyBudget(&d, cluster, several, place)
	r.envoyTLS(&d, cluster)
	r.add(d)
}

// envoyTimes reads the durations. Envoy's timeout covers all attempts
// together, and a route without per_try_timeout lets one attempt take all of
// it.
func (r *reader) envoyTimes(d *policyfile.Dependency, action, policy *tree.Node) {
	d.Policy.Total = envoyTimeout
	timeout := action.Get("timeout")
	// Zero switches the timeout off, in contrast to an absent field.
	if r.duration(d, "total", timeout, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(timeout.At, "R-3", d, "total.missing", "timeout %s switches the route's timeout off", timeout.Value)
	}
	d.Policy.PerAttempt = d.Policy.Total // Envoy's default
	d.SetPlace("per_attempt", policy.At)
	if v := policy.Path("per_try_timeout"); v != nil {
		d.SetPlace("per_attempt", v.At)
		if t, ok := v.Span(); ok && t > 0 {
			d.Policy.PerAttempt = t
		}
	}
	d.Policy.Backoff.Base = envoyBase
	back := policy.Path("retry_back_off")
	r.duration(d, "backoff.base", back.Path("base_interval"), &d.Policy.Backoff.Base)
	// Envoy's documented default: ten times the base.
	d.Policy.Backoff.Cap = 10 * d.Policy.Backoff.Base
	r.duration(d, "backoff.cap", back.Path("max_interval"), &d.Policy.Backoff.Cap)
}

// unsent are the conditions under which nothing has reached the upstream
// service, so that a repetition is safe for any method.
var unsent = []string{"connect-failure", "refused-stream", "reset-before-request", "rate-limited", "envoy-ratelimited"}

// conditions judges retry_on, in Envoy's words, which Istio uses too.
// Conditions that may repeat a request the service has seen need idempotent
// methods.
func (r *reader) conditions(d *policyfile.Dependency, on, codes *tree.Node, idempotent bool) {
	at := on.At
	repeats := false
	for word := range strings.SplitSeq(on.Text(), ",") {
		word = strings.TrimSpace(word)
		switch {
		// The name suggests all of 4xx; 409 is the one status that it
		// retries.
		case word == "retriable-4xx":
			r.refuse(at, "R-4", d, "classify.http_409", "retriable-4xx retries 409: a conflict does not go away")
		case slices.Contains(never, word):
			r.refuse(at, "R-4", d, "classify.http_"+word, "%s is retried: the same request gets the same answer", word)
		}
		repeats = repeats || word != "" && !slices.Contains(unsent, word)
	}
	for _, c := range codes.List() {
		if slices.Contains(never, c.Text()) {
			r.refuse(c.At, "R-4", d, "classify.http_"+c.Text(), "%s is retried: the same request gets the same answer", c.Text())
		}
	}
	if repeats && !idempotent && !d.Policy.Disabled {
		r.refuse(at, "R-6", d, "methods", "every method is retried, POST without an Idempotency-Key too: match on :method")
	}
}

// methodBound reports whether a route matches a single idempotent method
// (RFC 9110 section 9.2.2). A pattern over methods is not understood, and
// counts as any method.
func methodBound(route *tree.Node) bool {
	for _, h := range route.Get("match").Path("headers").List() {
		if h.Get("name").Text() != ":method" {
			continue
		}
		// Both spellings of the match are in use; the second one is
		// deprecated.
		exact := cmp.Or(h.Path("string_match", "exact").Text(), h.Path("exact_match").Text())
		return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}, exact)
	}
	return false
}

// envoyBudget reads the retry budget of the cluster: Envoy keeps it beside
// the circuit breakers, not with the route. Its share is of active requests,
// which is close enough to judge.
func (r *reader) envoyBudget(d *policyfile.Dependency, cluster *tree.Node, several bool, at policyfile.Position) {
	d.Lacks = append(d.Lacks, "budget")
	if several {
		r.unjudged(at, d.Name, "several files have a cluster %s: its retry budget and its TLS are not judged", d.Name)
		return
	}
	if cluster == nil {
		r.unjudged(at, d.Name, "cluster %s is not in these files: its retry budget and its TLS are not judged", d.Name)
		return
	}
	for _, t := range cluster.Path("circuit_breakers", "thresholds").List() {
		if budget := t.Path("retry_budget"); budget != nil {
			r.share(d, budget, budget.Path("budget_percent", "value"))
			return
		}
	}
	r.refuse(cluster.At, "R-7", d, "budget",
		"the cluster has no retry_budget: its retries are bounded by a number of concurrent ones, whatever the traffic")
}

// share reads the percentage of a retry budget of Envoy's, which Istio hands on. A
// budget without one means the default of 20 %.
func (r *reader) share(d *policyfile.Dependency, budget, percentage *tree.Node) {
	share, from := envoyPercent, budget
	if percentage != nil {
		share, _ = percentage.Number()
		from = percentage
	}
	d.SetPlace("budget", budget.At)
	d.SetPlace("budget.ratio", from.At)
	// More than all requests cannot be retried; the finding comes from the range.
	d.Policy.Budget.Ratio = min(share/100, 1)
}

// envoyTLS looks for a cluster that accepts any certificate. Envoy
// does so unless it is given something to validate against.
func (r *reader) envoyTLS(d *policyfile.Dependency, cluster *tree.Node) {
	// A cluster without TLS is not judged here: the mesh may encrypt below
	// it.
	tls := cluster.Path("transport_socket", "typed_config")
	if tls == nil || !strings.Contains(tls.Get("@type").Text(), "UpstreamTlsContext") {
		return
	}
	// Any of the three places may hold the validation; an SDS secret is
	// fetched at run time and taken as good.
	common := tls.Path("common_tls_context")
	validation := common.Path("validation_context")
	combined := common.Path("combined_validation_context")
	secret := common.Path("validation_context_sds_secret_config")
	if v := validation.Path("trust_chain_verification"); v.Text() == "ACCEPT_UNTRUSTED" {
		r.refuse(v.At, "R-9", d, "tls.verify", "ACCEPT_UNTRUSTED switches the verification of certificates off")
	} else if validation == nil && combined == nil && secret == nil {
		r.refuse(tls.At, "R-9", d, "tls.verify", "without a validation_context Envoy accepts any certificate")
	}
}
