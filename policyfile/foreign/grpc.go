package foreign

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/grpccode"
	"github.com/forbear-go/forbear/policyfile"
)

// grpcMaxAttempts is what gRPC's clients cut maxAttempts to, whatever the
// file says (gRFC A6).
const grpcMaxAttempts = 5

// grpc reads a service config (gRFC A6). maxAttempts counts the first call;
// waits lie within 20 % of the exponential value; retryThrottling is a token
// bucket that each success refills by tokenRatio.
func (r *reader) grpc(data []byte) error {
	// A service config is one JSON document, whose names may also be given
	// as YAML.
	roots, err := r.documents(data)
	if err != nil {
		return err
	}
	for _, root := range roots {
		throttling := get(root, "retryThrottling")
		for _, method := range items(get(root, "methodConfig")) {
			r.grpcMethod(resolve(method), throttling)
		}
	}
	return nil
}

// grpcMethod reads one method config. One without a retryPolicy does not
// retry.
func (r *reader) grpcMethod(n, throttling *yaml.Node) {
	d := policyfile.Dependency{Name: grpcName(n), At: r.place(n), Protocol: "grpc"}
	d.Policy.Kind = forbear.GRPC
	policy := get(n, "retryPolicy")
	// Hedging sends more without a failure: another question, which no rule
	// here covers.
	if hedging := get(n, "hedgingPolicy"); hedging != nil {
		r.unjudged(r.place(hedging), d.Name, "%s hedges its calls, which is not judged here", d.Name)
	}
	if policy == nil {
		return
	}
	at := r.place(policy)
	if v := get(policy, "maxAttempts"); v != nil {
		// gRPC refuses a config with fewer than two attempts.
		if m, ok := number(v); ok && m >= 2 {
			retries(&d, int(min(m, grpcMaxAttempts))-1, r.place(v))
		} else {
			r.unjudged(r.place(v), d.Name, "maxAttempts %q of %s is not a number of at least 2", v.Value, d.Name)
		}
	}
	// A duration that cannot be read stays zero and means the default: gRPC
	// itself refuses such a config, so that it never runs.
	r.duration(&d, "backoff.base", get(policy, "initialBackoff"), &d.Policy.Backoff.Base)
	r.duration(&d, "backoff.cap", get(policy, "maxBackoff"), &d.Policy.Backoff.Cap)
	// gRFC A6 fixes the jitter, and no setting changes it: every service
	// config with retries breaks R-1.
	r.refuse(at, "R-1", &d, "backoff.jitter", "gRPC's own retries wait within 20%% of the same time: that is not full jitter")
	r.duration(&d, "per_attempt", get(policy, "perAttemptRecvTimeout"), &d.Policy.PerAttempt)
	if r.duration(&d, "total", get(n, "timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(at, "R-3", &d, "total.missing", "no timeout bounds the call and its retries")
	}
	r.grpcCodes(&d, get(policy, "retryableStatusCodes"))
	r.throttling(&d, throttling, at)
	r.add(d)
}

// grpcNever are the codes that R-4 forbids to retry: the same request fails
// the same way again.
var grpcNever = []string{"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}

// grpcCodes judges the retryable codes, which gRPC accepts by number, and by name
// in any case.
func (r *reader) grpcCodes(d *policyfile.Dependency, n *yaml.Node) {
	for _, c := range items(n) {
		code := strings.ToUpper(text(c))
		if i, ok := number(c); ok && i >= 0 && int(i) < len(grpccode.Names) {
			code = grpccode.Names[int(i)]
		}
		if slices.Contains(grpcNever, code) {
			r.refuse(r.place(c), "R-4", d, "classify.grpc_"+code, "%s is retried: the same request gets the same answer", code)
		}
	}
}

// throttling reads the token bucket as a budget: each success earns
// tokenRatio of a retry, which is a share of the successful calls. The
// bucket's size bounds a burst and is not judged.
func (r *reader) throttling(d *policyfile.Dependency, n *yaml.Node, at policyfile.Position) {
	if n == nil {
		r.refuse(at, "R-7", d, "budget", "no retryThrottling: every failed call is sent again")
		return
	}
	// gRPC demands a positive ratio; anything else would not run.
	ratio, ok := number(get(n, "tokenRatio"))
	if !ok || ratio <= 0 || math.IsInf(ratio, 0) {
		r.unjudged(r.place(n), d.Name, "the tokenRatio of retryThrottling cannot be read")
		return
	}
	d.SetPlace("budget", r.place(n))
	d.SetPlace("budget.ratio", r.place(get(n, "tokenRatio")))
	d.Policy.Budget.Ratio = min(ratio, 1)
}

// grpcName joins the names of a method config, as the policy stands for all
// of them. A name without a service means every method.
func grpcName(n *yaml.Node) string {
	var names []string
	for _, name := range items(get(n, "name")) {
		service, method := text(get(name, "service")), text(get(name, "method"))
		switch {
		case service == "":
			names = append(names, "all-methods")
		case method == "":
			names = append(names, service)
		default:
			names = append(names, service+"/"+method)
		}
	}
	if len(names) == 0 {
		return "unnamed"
	}
	return strings.Join(names, ",")
}
