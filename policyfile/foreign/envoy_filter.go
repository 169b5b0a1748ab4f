package foreign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// filter reads the patches of one EnvoyFilter that set retries of routes and virtual
// hosts. Whole route configurations and listeners in a patch are read as in any other
// file, and so are clusters.
func (e *envoyReader) filter(root *tree.Node) {
	for _, patch := range root.Get("spec").Get("configPatches").List() {
		value := patch.Get("patch").Get("value")
		operation := patch.Get("patch").Get("operation").Text()
		var route, host *tree.Node
		switch patch.Get("applyTo").Text() {
		case "HTTP_ROUTE":
			route = value
		case "VIRTUAL_HOST":
			// Its routes, if it has any, are read with the host.
			if host = value; len(host.Get("routes").List()) > 0 {
				e.host(host, nil)
				continue
			}
		default:
			continue
		}
		x := &envoyRoute{
			node: cmp.Or(route, host), action: actionOf(route), host: host, scopes: []*tree.Node{route, host},
			policy: cmp.Or(policyOf(actionOf(route)), policyOf(host)),
		}
		e.seen[x.policy] = true
		x.asked = addedHeaders(x.scopes)
		if operation == "REMOVE" || x.policy == nil && x.asked.words == "" && x.asked.most == nil {
			continue // it says nothing of retries
		}
		e.patched(root, patch, x)
	}
}

// patched reads a patch to routes that stand elsewhere. A merge leaves what it does
// not name as Istio has it: as the VirtualService beside it says, or two retries, on
// Istio's own conditions.
func (e *envoyReader) patched(root, patch *tree.Node, x *envoyRoute) {
	merges := slices.Contains([]string{"MERGE", ""}, patch.Get("patch").Get("operation").Text())
	at := cmp.Or(x.policy, x.asked.on, x.asked.most).At
	d := policyfile.Dependency{At: at, Protocol: "http", Layer: "istio", Route: root.Get("metadata").Get("name").Text() + " " + flat(patch.Get("match"))}
	d.Name = patchedName(root, patch, x.action)
	if d.Name == "" {
		d.Name = "every route"
		e.open(at, &d, "the patch does not say whose routes it concerns")
	}
	var below *tree.Node
	if merges {
		below = e.merged(d.Name, patch.Get("match").Get("routeConfiguration").Get("vhost").Get("route").Get("name").Text())
	}
	on := x.policy.Fold("retry_on")
	left := on == nil && x.asked.words == "" && below.Get("retries") != nil // to the VirtualService, which is judged itself
	if on == nil && merges && !left {
		x.asked.words += "," + istioRetryOn
	}
	if len(x.words(on.Text())) == 0 && !left {
		e.quiet(at)
		return
	}
	written, absent := cmp.Or(x.asked.most, x.policy.Fold("num_retries"), below.Get("retries").Get("attempts")), envoyRetries
	if merges {
		absent = istioRetries
	}
	count, place := e.number(&d, written, absent, at)
	retries(&d, count, place)
	if written == nil && merges && count > 0 {
		e.open(at, &d, "the patch leaves the number of retries as the route has it: %d, unless a VirtualService says otherwise", absent)
	}
	e.patchedTimes(&d, x, merges, below)
	if !left {
		e.envoyConditions(&d, x)
	} else if x.policy.Fold("rate_limited_retry_back_off") != nil {
		e.retryAfter(&d, x.policy)
	}
	cluster, several := e.clusters.in(e.part, withoutPort(d.Name))
	d.Service = e.serviceOf(d.Name, cluster)
	if !d.Policy.Disabled {
		if cluster != nil || below == nil {
			e.envoyBudget(&d, cluster, several, "", place)
		} else {
			d.Lacks = append(d.Lacks, "budget") // Istio's rule for the host is judged with its route
		}
		e.handshakes(&d, cluster, x.words(x.policy.Fold("retry_on").Text())...)
	}
	var said []string // and judged where the VirtualService says it
	if written != nil && written == below.Get("retries").Get("attempts") {
		said = append(said, "max_retries")
	}
	if x.action.Fold("timeout") == nil && below.Get("timeout") != nil {
		said = append(said, "total")
	}
	e.add(d, said...)
}

// merged returns the route of a VirtualService that a patch to a virtual host is merged
// into, or nil: the only one to that host, or the one of that name.
func (e *envoyReader) merged(vhost, name string) (found *tree.Node) {
	host := hostIn(withoutPort(vhost), "")
	for _, part := range e.beside {
		for _, route := range part.Root.Get("spec").Get("http").List() {
			for _, to := range route.Get("route").List() {
				if !hostIn(to.Get("destination").Get("host").Text(), namespaceOf(part.Root)).same(host) || name != "" && route.Get("name").Text() != name {
					continue
				}
				if found != nil && found != route {
					return nil
				}
				found = route
			}
		}
	}
	return found
}

// patchedTimes is envoyTimes for a patch, which may leave the timeout to the route below
// it.
func (e *envoyReader) patchedTimes(d *policyfile.Dependency, x *envoyRoute, merges bool, below *tree.Node) {
	if !merges || x.action.Fold("timeout") != nil {
		e.envoyTimes(d, x.action, x.policy, d.At)
		return
	}
	if e.duration(d, "total", below.Get("timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		d.Lacks = append(d.Lacks, "total.missing")
	}
	if below == nil {
		e.unjudged(d.At, d.Name, "the patch leaves the route's timeout as it is: what bounds the call and its retries is not judged")
	}
	back := x.policy.Fold("retry_back_off")
	e.envoyWaits(d, cmp.Or(x.policy.Fold("per_try_timeout"), below.Get("retries").Get("perTryTimeout")), back.Fold("base_interval"), back.Fold("max_interval"), d.At)
}

// patchedName names what a patch concerns: the cluster that it says, the virtual host
// that it matches, or else all that its workloads call.
func patchedName(root, patch, action *tree.Node) string {
	vhost := patch.Get("match").Get("routeConfiguration").Get("vhost")
	name := cmp.Or(action.Get("cluster").Text(), vhost.Get("name").Text(), patch.Get("patch").Get("value").Get("name").Text())
	if name != "" {
		return name
	}
	// A workload's own routes go anywhere.
	if labels := root.Get("spec").Get("workloadSelector").Get("labels"); labels != nil && len(labels.Pairs) > 0 {
		return "every route of " + labels.Pairs[0].Value.Text()
	}
	return ""
}

// withoutPort takes the port from the name of a virtual host: "payments.default.svc.cluster.local:8080".
func withoutPort(name string) string {
	host, port, found := strings.Cut(name, ":")
	if found && port != "" && strings.Trim(port, "0123456789") == "" {
		return host
	}
	return name
}

// patchedClusters lets the circuit breakers and the TLS of a filter's patches count for
// the clusters that they match, where the files have no such cluster.
func (e *envoyReader) patchedClusters(part *Part) {
	for _, patch := range part.Root.Get("spec").Get("configPatches").List() {
		match, value := patch.Get("match").Get("cluster"), patch.Get("patch").Get("value")
		if patch.Get("applyTo").Text() != "CLUSTER" || !value.Map() {
			continue
		}
		for _, name := range []string{match.Get("name").Text(), match.Get("service").Text()} {
			if name != "" && len(e.clusters[name]) == 0 {
				e.clusters.add(part, name, value)
			}
		}
	}
}
