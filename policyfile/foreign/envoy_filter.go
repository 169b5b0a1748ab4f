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
// not name as Istio has it: two retries, on Istio's own conditions, and the timeout
// of the VirtualService.
func (e *envoyReader) patched(root, patch *tree.Node, x *envoyRoute) {
	merges := slices.Contains([]string{"MERGE", ""}, patch.Get("patch").Get("operation").Text())
	at := cmp.Or(x.policy, x.asked.on, x.asked.most).At
	d := policyfile.Dependency{At: at, Protocol: "http", Route: root.Get("metadata").Get("name").Text() + " " + flat(patch.Get("match"))}
	d.Name = patchedName(root, patch, x.action)
	if d.Name == "" {
		d.Name = "every route"
		e.open(at, &d, "the patch does not say whose routes it concerns")
	}
	on := x.policy.Path("retry_on")
	if on == nil && merges {
		x.asked.words += "," + istioRetryOn
	}
	if len(x.words(on.Text())) == 0 {
		e.quiet(at)
		return
	}
	written, absent := cmp.Or(x.asked.most, x.policy.Path("num_retries")), envoyRetries
	if merges {
		absent = istioRetries
	}
	count, place := e.number(&d, written, absent, at)
	retries(&d, count, place)
	if written == nil && merges && count > 0 {
		e.open(at, &d, "the patch leaves the number of retries as the route has it: %d, unless a VirtualService says otherwise", absent)
	}
	e.patchedTimes(&d, x, merges)
	e.envoyConditions(&d, x)
	cluster, several := e.clusters.in(at.File, withoutPort(d.Name))
	d.Service = serviceOf(d.Name, cluster)
	if !d.Policy.Disabled {
		e.envoyBudget(&d, cluster, several, "", place)
		e.handshakes(&d, cluster, x.words(x.policy.Path("retry_on").Text())...)
	}
	e.add(d)
}

// patchedTimes is envoyTimes for a patch, which may leave the timeout to the route.
func (e *envoyReader) patchedTimes(d *policyfile.Dependency, x *envoyRoute, merges bool) {
	if !merges || x.action.Path("timeout") != nil {
		e.envoyTimes(d, x.action, x.policy, d.At)
		return
	}
	d.Lacks = append(d.Lacks, "total.missing")
	e.unjudged(d.At, d.Name, "the patch leaves the route's timeout as it is: what bounds the call and its retries is not judged")
	back := x.policy.Path("retry_back_off")
	e.envoyWaits(d, x.policy.Path("per_try_timeout"), back.Path("base_interval"), back.Path("max_interval"), d.At)
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
func (e *envoyReader) patchedClusters(root *tree.Node) {
	for _, patch := range root.Get("spec").Get("configPatches").List() {
		match, value := patch.Get("match").Get("cluster"), patch.Get("patch").Get("value")
		if patch.Get("applyTo").Text() != "CLUSTER" || !value.Map() {
			continue
		}
		for _, name := range []string{match.Get("name").Text(), match.Get("service").Text()} {
			if name != "" && len(e.clusters[name]) == 0 {
				e.clusters.add(name, value)
			}
		}
	}
}
