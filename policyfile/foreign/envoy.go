package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

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

// envoy reads routes and clusters, wherever in the file they are: a
// bootstrap, or a dump of one of its parts. Envoy draws its waits with full
// jitter, as R-1 asks, so that jitter needs no finding.
//
// Clusters are gathered first, because a route names one that may stand
// below it.
func (r *reader) envoy(data []byte) error {
	roots, err := r.documents(data)
	if err != nil {
		return err
	}
	clusters := map[string]*yaml.Node{}
	for _, root := range roots {
		walk(root, func(n *yaml.Node) {
			for _, c := range items(get(n, "clusters")) {
				clusters[text(get(c, "name"))] = resolve(c)
			}
		})
	}
	for _, root := range roots {
		walk(root, func(n *yaml.Node) {
			for _, host := range items(path(n, "virtual_hosts")) {
				// A route without a policy of its own inherits that of
				// its virtual host.
				inherited := path(host, "retry_policy")
				for _, route := range items(get(host, "routes")) {
					r.envoyRoute(resolve(route), inherited, clusters)
				}
			}
		})
	}
	return nil
}

// envoyRoute reads one route that retries.
func (r *reader) envoyRoute(n, inherited *yaml.Node, clusters map[string]*yaml.Node) {
	action := get(n, "route")
	policy := cmp.Or(path(action, "retry_policy"), inherited)
	on := path(policy, "retry_on")
	if action == nil || policy == nil || text(on) == "" {
		return // without retry_on Envoy does not retry
	}
	// One finding speaks for the route: its cluster is chosen at run time,
	// by a header or by weight.
	name := text(get(action, "cluster"))
	if name == "" {
		name = "unnamed"
		r.unjudged(r.place(action), "", "a route whose cluster is not named here retries")
	}
	// A cluster is a dependency: routes to the same one give several
	// findings, each with its own line.
	d := policyfile.Dependency{Name: name, At: r.place(policy), Protocol: "http"}
	// The place is that of the figure which a reader would change, or of
	// the policy without it.
	count, place := envoyRetries, r.place(policy)
	if v := path(policy, "num_retries"); v != nil {
		if m, ok := number(v); ok {
			count, place = int(m), r.place(v)
		}
	}
	retries(&d, count, place)
	r.envoyTimes(&d, action, policy)
	r.conditions(&d, on, path(policy, "retriable_status_codes"), methodBound(n))
	r.envoyBudget(&d, clusters[name], place)
	r.envoyTLS(&d, clusters[name])
	r.add(d)
}

// envoyTimes reads the durations. Envoy's timeout covers all attempts
// together, and a route without per_try_timeout lets one attempt take all of
// it.
func (r *reader) envoyTimes(d *policyfile.Dependency, action, policy *yaml.Node) {
	d.Policy.Total = envoyTimeout
	timeout := get(action, "timeout")
	// Zero switches the timeout off, in contrast to an absent field.
	if r.duration(d, "total", timeout, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(r.place(timeout), "R-3", d, "total.missing", "timeout %s switches the route's timeout off", timeout.Value)
	}
	d.Policy.PerAttempt = d.Policy.Total // Envoy's default
	d.SetPlace("per_attempt", r.place(policy))
	if v := path(policy, "per_try_timeout"); v != nil {
		d.SetPlace("per_attempt", r.place(v))
		if t, ok := span(v); ok && t > 0 {
			d.Policy.PerAttempt = t
		}
	}
	d.Policy.Backoff.Base = envoyBase
	back := path(policy, "retry_back_off")
	r.duration(d, "backoff.base", path(back, "base_interval"), &d.Policy.Backoff.Base)
	// Envoy's documented default: ten times the base.
	d.Policy.Backoff.Cap = 10 * d.Policy.Backoff.Base
	r.duration(d, "backoff.cap", path(back, "max_interval"), &d.Policy.Backoff.Cap)
}

// unsent are the conditions under which nothing has reached the upstream
// service, so that a repetition is safe for any method.
var unsent = []string{"connect-failure", "refused-stream", "reset-before-request", "rate-limited", "envoy-ratelimited"}

// conditions judges retry_on, in Envoy's words, which Istio uses too.
// Conditions that may repeat a request the service has seen need idempotent
// methods.
func (r *reader) conditions(d *policyfile.Dependency, on, codes *yaml.Node, idempotent bool) {
	at := r.place(on)
	repeats := false
	for word := range strings.SplitSeq(text(on), ",") {
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
	for _, c := range items(codes) {
		if slices.Contains(never, text(c)) {
			r.refuse(r.place(c), "R-4", d, "classify.http_"+text(c), "%s is retried: the same request gets the same answer", text(c))
		}
	}
	if repeats && !idempotent && !d.Policy.Disabled {
		r.refuse(at, "R-6", d, "methods", "every method is retried, POST without an Idempotency-Key too: match on :method")
	}
}

// methodBound reports whether a route matches a single idempotent method
// (RFC 9110 section 9.2.2). A pattern over methods is not understood, and
// counts as any method.
func methodBound(route *yaml.Node) bool {
	for _, h := range items(path(get(route, "match"), "headers")) {
		if text(get(h, "name")) != ":method" {
			continue
		}
		// Both spellings of the match are in use; the second one is
		// deprecated.
		exact := cmp.Or(text(path(h, "string_match", "exact")), text(path(h, "exact_match")))
		return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}, exact)
	}
	return false
}

// envoyBudget reads the retry budget of the cluster: Envoy keeps it beside
// the circuit breakers, not with the route. Its share is of active requests,
// which is close enough to judge.
func (r *reader) envoyBudget(d *policyfile.Dependency, cluster *yaml.Node, at policyfile.Position) {
	if cluster == nil {
		r.unjudged(at, d.Name, "cluster %s is not in this file: its retry budget and its TLS are not judged", d.Name)
		return
	}
	for _, t := range items(path(cluster, "circuit_breakers", "thresholds")) {
		if budget := path(t, "retry_budget"); budget != nil {
			r.share(d, budget, path(budget, "budget_percent", "value"))
			return
		}
	}
	r.refuse(r.place(cluster), "R-7", d, "budget",
		"the cluster has no retry_budget: its retries are bounded by a number of concurrent ones, whatever the traffic")
}

// share reads the percentage of a retry budget of Envoy's, which Istio hands on. A
// budget without one means the default of 20 %.
func (r *reader) share(d *policyfile.Dependency, budget, percentage *yaml.Node) {
	share, from := envoyPercent, budget
	if percentage != nil {
		share, _ = number(percentage)
		from = percentage
	}
	d.SetPlace("budget", r.place(budget))
	d.SetPlace("budget.ratio", r.place(from))
	// More than all requests cannot be retried; the finding comes from the range.
	d.Policy.Budget.Ratio = min(share/100, 1)
}

// envoyTLS looks for a cluster that accepts any certificate. Envoy
// does so unless it is given something to validate against.
func (r *reader) envoyTLS(d *policyfile.Dependency, cluster *yaml.Node) {
	// A cluster without TLS is not judged here: the mesh may encrypt below
	// it.
	tls := path(cluster, "transport_socket", "typed_config")
	if tls == nil || !strings.Contains(text(get(tls, "@type")), "UpstreamTlsContext") {
		return
	}
	// Any of the three places may hold the validation; an SDS secret is
	// fetched at run time and taken as good.
	common := path(tls, "common_tls_context")
	validation := path(common, "validation_context")
	combined := path(common, "combined_validation_context")
	secret := path(common, "validation_context_sds_secret_config")
	if v := path(validation, "trust_chain_verification"); text(v) == "ACCEPT_UNTRUSTED" {
		r.refuse(r.place(v), "R-9", d, "tls.verify", "ACCEPT_UNTRUSTED switches the verification of certificates off")
	} else if validation == nil && combined == nil && secret == nil {
		r.refuse(r.place(tls), "R-9", d, "tls.verify", "without a validation_context Envoy accepts any certificate")
	}
}
