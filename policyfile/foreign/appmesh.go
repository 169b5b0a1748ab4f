package foreign

import (
	"cmp"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// appMeshRetries is how often App Mesh retries a route without a retry policy, as its
// page on Envoy's defaults says: twice, on 503 and on failed connections.
const appMeshRetries = 2

const appMeshDeaf = "App Mesh has no setting by which Retry-After is heeded"

// appMeshWords are the events of App Mesh in Envoy's words.
var appMeshWords = map[string]string{
	"server-error": "5xx", "gateway-error": "gateway-error", "client-error": "retriable-4xx",
	"stream-error": "refused-stream", "connection-error": "connect-failure",
}

// claimsAppMesh knows the resources of the controller, a route of CloudFormation, and
// the input of the command line, in camel or Pascal case.
func claimsAppMesh(n *tree.Node) bool {
	switch {
	case resource(n, "appmesh.k8s.aws", "VirtualRouter", "VirtualService"):
		return n.Has("spec")
	case n.Get("Type").Text() == "AWS::AppMesh::Route":
		return n.Get("Properties").Map()
	}
	return n.Has("virtualRouterName") && n.Has("routeName") && n.Get("spec").Map()
}

// appMesh reads the routes of App Mesh, each with the virtual service in front of its
// router.
func (r *reader) appMesh() {
	services := named{}
	for part := range r.each() {
		if part.Root.Get("kind").Text() == "VirtualService" {
			ref := part.Root.Get("spec").Get("provider").Get("virtualRouter").Get("virtualRouterRef")
			services.add(part, kubeService(ref.Get("name").Text(), refNamespace(ref, part.Root), part.Root.At).Name, part.Root)
		}
	}
	for part := range r.each() {
		n := part.Root
		if n.Get("apiVersion") == nil {
			r.appMeshRoute(n)
			continue
		}
		// In the first version of the resources the service had the routes.
		for _, route := range n.Get("spec").Get("routes").List() {
			d := kubeService(n.Get("metadata").Get("name").Text(), refNamespace(nil, n), route.At)
			d.Route = title(n) + " " + route.Get("name").Text()
			if service, _ := services.in(part, d.Name); service != nil {
				d.Service = service.Get("spec").Get("awsName").Text()
			}
			r.appMeshKinds(d, route)
		}
	}
}

// appMeshRoute reads a route that stands by itself.
func (r *reader) appMeshRoute(n *tree.Node) {
	if properties := n.Get("Properties"); properties != nil {
		n = properties
	}
	router := n.Fold("virtualRouterName")
	d := policyfile.Dependency{Name: cmp.Or(router.Text(), gist(router), "unnamed"), At: n.At, Protocol: "http"}
	d.Route = n.Fold("routeName").Text()
	r.appMeshKinds(d, n.Fold("spec"))
}

// appMeshKinds judges a route of any protocol but TCP, which is not retried.
func (r *reader) appMeshKinds(d policyfile.Dependency, spec *tree.Node) {
	for _, kind := range []string{"httpRoute", "http2Route", "grpcRoute", "http"} {
		route := spec.Fold(kind)
		if route == nil {
			continue
		}
		if kind == "grpcRoute" {
			d.Protocol, d.Policy.Kind = "grpc", forbear.GRPC
		}
		d.At = route.At
		r.appMeshUnit(d, route)
		return
	}
	r.quiet(d.At)
}

func (r *reader) appMeshUnit(d policyfile.Dependency, route *tree.Node) {
	policy := route.Fold("retryPolicy")
	if policy == nil {
		retries(&d, appMeshRetries, d.At)
		r.unjudged(d.At, d.Name, "%s says nothing of retries: App Mesh's default holds, %d of them, for writes too (R-6), unless the account is older than it", d.Name, appMeshRetries)
		d.Lacks = append(d.Lacks, "per_attempt") // the default does not tell
	} else {
		d.At = policy.At
		if most, ok := count(policy.Fold("maxRetries")); ok {
			retries(&d, most, policy.Fold("maxRetries").At)
		} else {
			r.open(policy.At, &d, "how often %s is retried is not in the file", d.Name)
		}
	}
	if d.Policy.Disabled {
		r.add(d)
		return
	}
	d.Policy.Total = envoyTimeout // of App Mesh too
	timeout := route.Fold("timeout", "perRequest")
	if r.time(&d, "total", timeout, appMeshTime, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(timeout.At, "R-3", &d, "total.missing", "a perRequest timeout of 0 switches it off: nothing bounds the call and its retries")
	}
	r.envoyWaits(&d, nil, nil, nil, d.At)
	if r.time(&d, "per_attempt", policy.Fold("perRetryTimeout"), appMeshTime, &d.Policy.PerAttempt); d.Policy.PerAttempt == 0 {
		d.Policy.PerAttempt = d.Policy.Total
	}
	if policy == nil {
		r.cannot(&d, "R-5", "", appMeshDeaf)
	} else {
		r.appMeshEvents(&d, route, policy)
	}
	r.cannot(&d, "R-7", "budget", "App Mesh has no retry budget: Envoy bounds retries by a number of concurrent ones, whatever the traffic")
	r.add(d)
}

// appMeshEvents judges when a route is retried. gRPC's events have no terminal code
// among them.
func (r *reader) appMeshEvents(d *policyfile.Dependency, route, policy *tree.Node) {
	on, at := []string{}, policy.At
	if grpc := policy.Fold("grpcRetryEvents"); grpc != nil {
		at = grpc.At
	}
	for _, key := range []string{"tcpRetryEvents", "httpRetryEvents"} {
		for _, event := range policy.Fold(key).List() {
			on, at = append(on, cmp.Or(appMeshWords[event.Text()], event.Text())), event.At
		}
	}
	bound := d.Policy.Kind == forbear.GRPC || idempotent(strings.ToUpper(route.Fold("match", "method").Text()))
	grpc := len(policy.Fold("grpcRetryEvents").List()) > 0
	if d.Policy.Kind == forbear.GRPC && (grpc || len(on) > 0) {
		match := route.Fold("match")
		r.grpcWrites(d, grpcName{service: match.Fold("serviceName").Text(), method: match.Fold("methodName").Text()}, at)
	}
	if r.conditions(d, &tree.Node{Value: strings.Join(on, ","), At: at}, nil, bound) || grpc {
		r.cannot(d, "R-5", "", appMeshDeaf)
	}
}

// appMeshTime reads a duration of a value and its unit.
func appMeshTime(n *tree.Node) (time.Duration, bool) {
	v, ok := n.Fold("value").Number()
	unit := time.Millisecond
	if n.Fold("unit").Text() == "s" {
		unit = time.Second
	}
	return saturated(max(v, 0), unit), ok
}
