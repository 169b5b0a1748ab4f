package foreign

import (
	"math"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/grpccode"
	"github.com/forbear-go/forbear/policyfile"
)

// grpcMaxAttempts is what gRPC's clients cut maxAttempts to, whatever the
// file says (gRFC A6).
const grpcMaxAttempts = 5

// claimsGRPC knows a service config by its lists and maps.
func claimsGRPC(n *tree.Node) bool {
	return n.Path("method_config") != nil && n.Path("method_config").Kind == tree.List ||
		n.Path("retry_throttling").Path("token_ratio") != nil || n.Path("retry_throttling").Path("max_tokens") != nil ||
		n.Path("load_balancing_config").List() != nil
}

// grpc reads service configs (gRFC A6). maxAttempts counts the first call;
// waits lie within 20 % of the exponential value; retryThrottling is a token
// bucket that each success refills by tokenRatio.
func (r *reader) grpc() {
	for _, part := range r.parts {
		throttling := part.Root.Path("retry_throttling")
		for _, method := range part.Root.Path("method_config").List() {
			r.grpcMethod(method, throttling)
		}
	}
}

// grpcMethod reads one method config. One without a retryPolicy does not
// retry.
func (r *reader) grpcMethod(n, throttling *tree.Node) {
	d := policyfile.Dependency{Name: grpcName(n), At: n.At, Protocol: "grpc"}
	d.Policy.Kind = forbear.GRPC
	policy := n.Get("retryPolicy")
	// Hedging sends more without a failure: another question, which no rule
	// here covers.
	if hedging := n.Get("hedgingPolicy"); hedging != nil {
		r.unjudged(hedging.At, d.Name, "%s hedges its calls, which is not judged here", d.Name)
	}
	if policy == nil {
		return
	}
	at := policy.At
	if v := policy.Get("maxAttempts"); v != nil {
		// gRPC refuses a config with fewer than two attempts.
		if m, ok := v.Number(); ok && m >= 2 {
			retries(&d, int(min(m, grpcMaxAttempts))-1, v.At)
		} else {
			r.unjudged(v.At, d.Name, "maxAttempts %q of %s is not a number of at least 2", v.Value, d.Name)
		}
	}
	// A duration that cannot be read stays zero and means the default: gRPC
	// itself refuses such a config, so that it never runs.
	r.duration(&d, "backoff.base", policy.Get("initialBackoff"), &d.Policy.Backoff.Base)
	r.duration(&d, "backoff.cap", policy.Get("maxBackoff"), &d.Policy.Backoff.Cap)
	// gRFC A6 fixes the jitter, and no setting changes it: every service
	// config with retries breaks R-1.
	r.refuse(at, "R-1", &d, "backoff.jitter", "gRPC's own retries wait within 20%% of the same time: that is not full jitter")
	r.duration(&d, "per_attempt", policy.Get("perAttemptRecvTimeout"), &d.Policy.PerAttempt)
	if r.duration(&d, "total", n.Get("timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(at, "R-3", &d, "total.missing", "no timeout bounds the call and its retries")
	}
	r.grpcCodes(&d, policy.Get("retryableStatusCodes"))
	r.throttling(&d, throttling, at)
	r.add(d)
}

// grpcNever are the codes that R-4 forbids to retry: the same request fails
// the same way again.
var grpcNever = []string{"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}

// grpcCodes judges the retryable codes, which gRPC accepts by number, and by name
// in any case.
func (r *reader) grpcCodes(d *policyfile.Dependency, n *tree.Node) {
	for _, c := range n.List() {
		code := strings.ToUpper(c.Text())
		if i, ok := c.Number(); ok && i >= 0 && int(i) < len(grpccode.Names) {
			code = grpccode.Names[int(i)]
		}
		if slices.Contains(grpcNever, code) {
			r.refuse(c.At, "R-4", d, "classify.grpc_"+code, "%s is retried: the same request gets the same answer", code)
		}
	}
}

// throttling reads the token bucket as a budget: each success earns
// tokenRatio of a retry, which is a share of the successful calls. The
// bucket's size bounds a burst and is not judged.
func (r *reader) throttling(d *policyfile.Dependency, n *tree.Node, at policyfile.Position) {
	if n == nil {
		r.refuse(at, "R-7", d, "budget", "no retryThrottling: every failed call is sent again")
		return
	}
	// gRPC demands a positive ratio; anything else would not run.
	ratio, ok := n.Get("tokenRatio").Number()
	if !ok || ratio <= 0 || math.IsInf(ratio, 0) {
		r.unjudged(n.At, d.Name, "the tokenRatio of retryThrottling cannot be read")
		return
	}
	d.SetPlace("budget", n.At)
	d.SetPlace("budget.ratio", n.Get("tokenRatio").At)
	d.Policy.Budget.Ratio = min(ratio, 1)
}

// grpcName joins the names of a method config, as the policy stands for all
// of them. A name without a service means every method.
func grpcName(n *tree.Node) string {
	var names []string
	for _, name := range n.Get("name").List() {
		service, method := name.Get("service").Text(), name.Get("method").Text()
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
