package foreign

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// envoyClusters gathers the clusters of all files by name.
func (r *reader) envoyClusters() named {
	clusters := named{}
	for part := range r.each() {
		part.Root.Walk(func(n *tree.Node) bool {
			if n.Has("name") && (n.Fold("load_assignment") != nil || n.Fold("connect_timeout") != nil || n.Fold("circuit_breakers") != nil || n.Fold("eds_cluster_config") != nil) {
				clusters.add(part, n.Get("name").Text(), n)
			}
			for _, c := range n.Get("clusters").List() {
				// A weighted cluster is no cluster but names one.
				if name := c.Get("name").Text(); name != "" && !c.Has("weight") && !slices.Contains(clusters[name], entry{part, c}) {
					clusters.add(part, name, c)
				}
			}
			return true
		})
	}
	return clusters
}

// serviceOf returns the host behind a cluster, or "" where there is none to name: no
// endpoint, several, or an address that says nothing outside of its machine.
func (e *envoyReader) serviceOf(name string, cluster *tree.Node) string {
	// Istio's names, as in "outbound|8080|v1|payments.default.svc.cluster.local".
	if parts := strings.Split(name, "|"); len(parts) == 4 {
		return parts[3]
	}
	host, known := e.hosts[cluster]
	if !known {
		host = hostBehind(cluster)
		e.hosts[cluster] = host
	}
	return host
}

func hostBehind(cluster *tree.Node) string {
	host := ""
	same := true
	cluster.Walk(func(n *tree.Node) bool {
		address := n.Fold("socket_address", "address").Text()
		if address != "" {
			same = same && (host == "" || host == address)
			host = address
		}
		return true
	})
	if _, err := netip.ParseAddr(host); err == nil || !same || host == "localhost" {
		return ""
	}
	return host
}

// envoyBudget reads the retry budget of the cluster: Envoy keeps it beside
// the circuit breakers, not with the route, and for each priority.
func (r *reader) envoyBudget(d *policyfile.Dependency, cluster *tree.Node, several bool, priority string, at policyfile.Position) {
	switch {
	case several:
		d.Lacks = append(d.Lacks, "budget")
		r.unjudged(at, d.Name, "there are several clusters %s: its retry budget and its TLS are not judged", d.Name)
		return
	case cluster == nil:
		d.Lacks = append(d.Lacks, "budget")
		r.unjudged(at, d.Name, "cluster %s is not in these files: its retry budget and its TLS are not judged", d.Name)
		return
	}
	for _, t := range cluster.Fold("circuit_breakers", "thresholds").List() {
		of := cmp.Or(t.Get("priority").Text(), "DEFAULT")
		if found := t.Fold("retry_budget"); found != nil && of == cmp.Or(priority, "DEFAULT") {
			r.keys(found, d, "budget_percent", "budget_interval", "min_retry_concurrency", "budgetPercent", "budgetInterval", "minRetryConcurrency")
			r.share(d, found, found.Fold("budget_percent", "value"))
			r.floor(d, found.Fold("min_retry_concurrency"))
			r.inFlight(d, found.Fold("budget_interval"), "Envoy's budget_interval, from 1.39,")
			return
		}
	}
	d.Lacks = append(d.Lacks, "budget")
	r.once(cluster.At, "R-7", d, "budget",
		"the cluster has no retry_budget: only a fixed number of concurrent retries bounds it, whatever the traffic")
}

// share reads the percentage of a retry budget of Envoy's, which Istio hands on. A
// budget without one means the default of 20 %. What it is a share of includes retries.
func (r *reader) share(d *policyfile.Dependency, section, percentage *tree.Node) {
	share, from := envoyPercent, section
	if percentage = given(percentage); percentage != nil {
		ok := false
		if share, ok = percentage.Number(); !ok {
			d.Lacks = append(d.Lacks, "budget")
			r.unjudged(percentage.At, d.Name, "%s: %q is not a number, so the budget's share is unknown", d.Name, percentage.Text())
			return
		}
		from = percentage
	}
	d.SetPlace("budget", section.At)
	d.SetPlace("budget.ratio", from.At)
	// More than all requests cannot be retried; the finding comes from the range.
	d.Policy.Budget.Ratio, d.Policy.Budget.Of = min(share/100, 1), budget.OfTotal
}

// inFlight judges the interval of a budget of Envoy's. The budget limits the retries in flight
// to a share of the requests in flight. With an interval, that is a share of all requests that
// began in it (budget_interval in circuit_breaker.proto; RetryBudgetImpl in
// resource_manager_impl.h). The retries are still counted at one moment, so that a longer
// interval bounds less. That is read in its code, and no Envoy was run for it, so that these
// are warnings. field is what the product calls it.
func (r *reader) inFlight(d *policyfile.Dependency, interval *tree.Node, field string) {
	const shortest = 10 * time.Millisecond // ten slots of whole milliseconds
	var over time.Duration
	r.duration(d, "budget.interval", interval, &over)
	if slices.Contains(d.Lacks, "budget") {
		return
	}
	if over == 0 {
		r.cannot(d, "R-7", "", "Envoy's retry budget is a share of the requests in flight, not of the requests of 30s: %s counts only the requests over a time, and allows more", field)
		return
	}
	// No figure is bounded by it.
	d.Lacks = append(d.Lacks, "budget")
	if !r.told.first(d.At.File, interval.At) {
		return
	}
	share := 100 * d.Policy.Budget.Ratio
	enough := saturated(d.Policy.Budget.Ratio/budget.DefaultRatio, over)
	var fault *policyfile.Fault
	switch longest := cmp.Or(d.Policy.Total, d.Policy.PerAttempt+d.Policy.Backoff.Cap); {
	case over < shortest:
		r.unjudged(interval.At, d.Name, "%s: an interval of %v is shorter than a request, so only the minimum of retries in flight applies: leave it out", d.Name, over)
		return
	case longest > 0 && longest < enough:
		fault = r.refuse(interval.At, "R-7", d, "budget.interval", "%.4g%% of all requests of %v may be retries in flight. That does not bound short retries, and even if each lasts %v they may be %.0f%% of the requests: leave the interval out",
			share, over, longest, share*over.Seconds()/longest.Seconds())
	default:
		fault = r.refuse(interval.At, "R-7", d, "budget.interval", "%.4g%% of all requests of %v may be retries in flight. That is over 20%% of the requests if a retry lasts less than %v: leave the interval out",
			share, over, enough)
	}
	fault.Uncertain, fault.Value = true, over.String()
}

// floor reads how many retries Envoy allows at a time whatever the share says. A
// high one is a budget of its own.
func (r *reader) floor(d *policyfile.Dependency, n *tree.Node) {
	const most = 10 // as in a policy file
	floor, at := r.number(d, n, envoyFloor, d.At)
	d.Policy.Budget.MinRetries = min(floor, most)
	if floor > most {
		d.Lacks = append(d.Lacks, "budget")
		r.once(at, "R-7", d, "budget.min_retries", "%d concurrent retries are allowed whatever the budget's share: want at most %d", floor, most)
	}
}

// otherClusters judges the TLS of clusters that nothing above has asked for: routes to
// them do not retry, or are calls of Envoy's own.
func (e *envoyReader) otherClusters() {
	for _, name := range slices.Sorted(maps.Keys(e.clusters)) {
		for _, c := range e.clusters[name] {
			if !e.seen[c.node] {
				e.tls(&policyfile.Dependency{Name: name, At: c.node.At}, c.node)
			}
		}
	}
}

// tls looks for a cluster that accepts any certificate. Envoy
// does so unless it is given something to validate against. A cluster without TLS is
// not judged here: the mesh may encrypt below it. verified reports whether a certificate
// may be refused at all.
func (e *envoyReader) tls(d *policyfile.Dependency, cluster *tree.Node) (verified bool) {
	e.seen[cluster] = true
	// The transport sockets of a cluster may be several, by the endpoints' labels, and
	// one may hold another.
	for _, key := range []string{"transport_socket", "transport_socket_matches"} {
		cluster.Fold(key).Walk(func(n *tree.Node) bool {
			if n.Fold("common_tls_context") == nil && !strings.HasSuffix(n.Get("@type").Text(), ".UpstreamTlsContext") {
				return true
			}
			verified = e.upstreamTLS(d, n) || verified
			return false
		})
	}
	return verified
}

// validators are what a certificate may be validated against. SAN matchers alone are
// refused by Envoy.
var validators = []string{
	"trusted_ca", "system_root_certs", "ca_certificate_provider_instance", "verify_certificate_hash",
	"verify_certificate_spki", "custom_validator_config",
}

// upstreamTLS judges one TLS context, and reports whether it verifies certificates. What
// is fetched at run time, by SDS or from a provider, is taken as good.
func (r *reader) upstreamTLS(d *policyfile.Dependency, tls *tree.Node) (verified bool) {
	common := tls.Fold("common_tls_context")
	combined := common.Fold("combined_validation_context")
	for _, key := range []string{
		"validation_context_sds_secret_config", "validation_context_certificate_provider", "validation_context_certificate_provider_instance",
	} {
		verified = verified || common.Fold(key) != nil || combined.Fold(key) != nil
	}
	for _, context := range []*tree.Node{common.Fold("validation_context"), combined.Fold("default_validation_context")} {
		if v := context.Fold("trust_chain_verification"); v.Text() == "ACCEPT_UNTRUSTED" {
			r.once(v.At, "R-9", d, "tls.verify", "ACCEPT_UNTRUSTED turns certificate verification off")
			return false
		}
		if v := context.Fold("allow_expired_certificate"); v.True() {
			r.once(v.At, "R-9", d, "tls.verify", "expired certificates are accepted")
		}
		verified = verified || slices.ContainsFunc(validators, func(key string) bool { return context.Fold(key) != nil })
	}
	if !verified {
		r.once(tls.At, "R-9", d, "tls.verify", "without a trusted CA in a validation_context Envoy accepts any certificate")
	}
	return verified
}

// handshakes judges the certificates of a cluster, and notes where one that is refused is
// asked for again: to these conditions that is a connection which failed.
func (e *envoyReader) handshakes(d *policyfile.Dependency, cluster *tree.Node, words ...string) {
	if e.tls(d, cluster) && slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"connect-failure", "reset", "5xx", "gateway-error"}, w)
	}) {
		e.cannot(d, "R-9", "", "Envoy retries when a certificate is refused, which it treats as a failed connection")
	}
}
