package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of MeshRetry, by its reference, and of the requests' timeout, which
// MeshTimeout has.
const (
	kumaRetries = 1
	kumaConnect = 5 * time.Second
	kumaHTTP    = "gateway-error,connect-failure,refused-stream"
)

// kumaWords are Kuma's conditions in Envoy's words. Both policies spell them in a way
// of their own.
var kumaWords = map[string]string{
	"5xx": "5xx", "all5xx": "5xx", "gatewayerror": "gateway-error", "reset": "reset", "retriable4xx": "retriable-4xx",
	"connectfailure": "connect-failure", "envoyratelimited": "envoy-ratelimited", "refusedstream": "refused-stream",
	"http3postconnectfailure": "http3-post-connect-failure", "retriablestatuscodes": "retriable-status-codes", "retriableheaders": "retriable-headers",
}

// kumaKinds are the policies for retries and for timeouts, and the one that bounds how
// many retries go on at once. Those of kumaFirst select services by their tags.
var (
	kumaKinds = []string{"MeshRetry", "MeshTimeout", "MeshCircuitBreaker"}
	kumaFirst = []string{"Retry", "Timeout", "CircuitBreaker"}
)

// kumaKind is the kind of one of Kuma's policies: a resource of Kubernetes, or in
// universal mode a type. spec is where its settings stand.
func kumaKind(n *tree.Node) (kind string, spec *tree.Node) {
	if resource(n, "kuma.io", slices.Concat(kumaKinds, kumaFirst)...) {
		return n.Get("kind").Text(), n.Get("spec")
	}
	kind = n.Get("type").Text()
	switch {
	case n.Has("apiVersion") || !n.Has("name"):
	case slices.Contains(kumaKinds, kind) && n.Get("spec").Map():
		return kind, n.Get("spec")
	case slices.Contains(kumaFirst, kind) && n.Has("conf") && n.Has("destinations"):
		return kind, n
	}
	return "", nil
}

// claimsKuma knows the policies of kumaKinds and kumaFirst.
func claimsKuma(n *tree.Node) bool {
	_, spec := kumaKind(n)
	return spec != nil
}

// kuma reads the policies of retries, the older kind too.
func (r *reader) kuma() {
	timeouts := named{}
	for part := range r.each() {
		switch kind, spec := kumaKind(part.Root); kind {
		case "MeshTimeout":
			for _, to := range spec.Get("to").List() {
				timeouts.add(part, kumaTarget(to).Name, to.Get("default").Get("http").Get("requestTimeout"))
			}
		case "Timeout":
			for _, to := range spec.Get("destinations").List() {
				timeouts.add(part, kumaTagged(to).Name, spec.Get("conf").Get("http").Get("requestTimeout"))
			}
		}
	}
	for part := range r.each() {
		kind, spec := kumaKind(part.Root)
		switch kind {
		case "MeshRetry":
			for _, to := range slices.Concat(spec.Get("to").List(), spec.Get("rules").List()) {
				r.kumaConf(kumaTarget(to), to.Get("default"), kumaPolicy{title(part.Root), false}, timeouts)
			}
		case "Retry":
			for _, to := range spec.Get("destinations").List() {
				r.kumaConf(kumaTagged(to), spec.Get("conf"), kumaPolicy{title(part.Root) + part.Root.Get("name").Text(), true}, timeouts)
			}
		}
	}
}

// kumaTarget is the dependency that a policy's target stands for. All of a mesh is one.
func kumaTarget(to *tree.Node) policyfile.Dependency {
	ref := to.Get("targetRef")
	return kumaService(cmp.Or(ref.Get("name").Text(), gist(ref.Get("labels"))), ref.Get("namespace").Text(), to.At)
}

// kumaTagged is the dependency that a selector of an older policy stands for. The first
// releases wrote its tag without a prefix.
func kumaTagged(to *tree.Node) policyfile.Dependency {
	match := to.Get("match")
	return kumaService(cmp.Or(match.Get("kuma.io/service"), match.Get("service")).Text(), "", to.At)
}

// kumaService reads the name of a service, in which Kuma joins the namespace and the
// port as in "orders_shop_svc_80".
func kumaService(name, namespace string, at policyfile.Position) policyfile.Dependency {
	if parts := strings.Split(name, "_"); len(parts) >= 3 && parts[2] == "svc" {
		name, namespace = parts[0], parts[1]
	}
	if name == "*" || name == "" {
		name = "mesh"
	}
	return kubeService(name, namespace, at)
}

// kumaPolicy is the policy that has the settings of a unit.
type kumaPolicy struct {
	name  string
	first bool // of kumaFirst
}

// kumaConf reads the settings for the three protocols, each a unit of its own.
func (r *reader) kumaConf(d policyfile.Dependency, conf *tree.Node, policy kumaPolicy, timeouts named) {
	total, several := timeouts.in(r.part, d.Name)
	if total == nil && !several {
		total, several = timeouts.in(r.part, "mesh")
	}
	if several {
		d.Lacks = append(d.Lacks, "total.missing")
		r.unjudged(d.At, d.Name, "several policies set requestTimeout for %s: which of them holds is not known", d.Name)
	}
	judged := false
	for _, protocol := range []string{"http", "grpc", "tcp"} {
		settings := conf.Get(protocol)
		if settings == nil {
			continue
		}
		judged = true
		unit := d
		unit.Protocol, unit.Route, unit.At = protocol, strings.TrimSpace(policy.name+" "+protocol), settings.At
		if protocol == "tcp" {
			r.kumaTCP(unit, settings)
			continue
		}
		r.kumaUnit(unit, settings, total, policy.first)
	}
	if !judged {
		r.quiet(d.At)
	}
}

// kumaUnit judges the retries of HTTP or gRPC, which Envoy carries out.
func (r *reader) kumaUnit(d policyfile.Dependency, n, total *tree.Node, first bool) {
	most, at := r.number(&d, n.Get("numRetries"), kumaRetries, d.At)
	if retries(&d, most, at); d.Policy.Disabled {
		r.add(d)
		return
	}
	d.Policy.Total = envoyTimeout
	if r.duration(&d, "total", total, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(total.At, "R-3", &d, "total.missing", "requestTimeout %s switches the timeout off: nothing bounds the call and its retries", total.Text())
	}
	back := n.Get("backOff")
	r.envoyWaits(&d, n.Get("perTryTimeout"), back.Get("baseInterval"), back.Get("maxInterval"), d.At)
	responded := true
	if d.Protocol == "grpc" {
		d.Policy.Kind = forbear.GRPC // no condition of Kuma's is terminal
		r.grpcWrites(&d, grpcName{service: d.Name}, d.At)
	} else {
		responded = r.kumaConditions(&d, n)
	}
	switch {
	case !responded:
	case first:
		r.cannot(&d, "R-5", "", "a Retry has no setting by which Retry-After is heeded, and a MeshRetry has rateLimitedBackOff")
	case n.Get("rateLimitedBackOff") == nil:
		r.unheeded(&d, at, "rateLimitedBackOff is missing: Retry-After is not heeded")
	}
	r.cannot(&d, "R-7", "budget", "Kuma has no retry budget: MeshCircuitBreaker bounds retries by a number of concurrent ones, whatever the traffic")
	r.add(d)
}

// kumaConditions sorts what retryOn lists into conditions, statuses and methods, as
// Kuma does. It reports whether responses are retried.
func (r *reader) kumaConditions(d *policyfile.Dependency, n *tree.Node) (responded bool) {
	list := n.Get("retryOn")
	at := placed(list, d.At)
	codes := &tree.Node{Kind: tree.List, Items: n.Get("retriableStatusCodes").List()}
	var on, methods []string
	for _, item := range list.List() {
		word := item.Text()
		if method, ok := strings.CutPrefix(word, "HttpMethod"); ok {
			methods = append(methods, strings.ToUpper(method))
		} else if known, ok := kumaWords[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(word))]; ok {
			on = append(on, known)
		} else {
			codes.Items = append(codes.Items, item)
		}
	}
	for _, item := range n.Get("retriableMethods").List() {
		methods = append(methods, item.Text())
	}
	if len(on) == 0 {
		on = []string{kumaHTTP}
	}
	if len(codes.Items) > 0 {
		on = append(on, "retriable-status-codes")
	}
	bound := len(methods) > 0 && !slices.ContainsFunc(methods, func(m string) bool { return !idempotent(m) })
	return r.conditions(d, &tree.Node{Value: strings.Join(on, ","), At: at}, codes, bound)
}

// kumaTCP judges attempts to connect, the first included.
func (r *reader) kumaTCP(d policyfile.Dependency, n *tree.Node) {
	attempts := n.Get("maxConnectAttempt", "maxConnectAttempts")
	most, at := r.number(&d, attempts, 1, d.At)
	if most <= 1 && !d.AtLeast {
		r.quiet(d.At)
		return
	}
	retries(&d, most-1, at)
	d.Policy.PerAttempt = kumaConnect
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
	r.cannot(&d, "R-1", "", "Kuma connects again at once, without a wait")
	r.cannot(&d, "R-3", "total.missing", "Kuma has nothing that bounds the attempts to connect together")
	r.cannot(&d, "R-7", "budget", "Kuma has no retry budget: MeshCircuitBreaker bounds retries by a number of concurrent ones, whatever the traffic")
	r.add(d)
}
