package foreign

import (
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// grpcMaxAttempts is what gRPC's clients cut maxAttempts to, whatever the
// file says (gRFC A6).
const grpcMaxAttempts = 5

// claimsGRPC knows a service config by its lists and maps.
func claimsGRPC(n *tree.Node) bool {
	return n.Fold("method_config") != nil && n.Fold("method_config").Kind == tree.List ||
		n.Fold("retry_throttling").Fold("token_ratio") != nil || n.Fold("retry_throttling").Fold("max_tokens") != nil ||
		n.Fold("load_balancing_config").List() != nil
}

// grpc reads service configs (gRFC A6). maxAttempts counts the first call;
// waits lie within 20 % of the exponential value; retryThrottling is a token
// bucket that each success refills by tokenRatio. A server that asks for a pause
// (grpc-retry-pushback-ms) gets it, so that R-5 needs no finding.
func (r *reader) grpc() {
	for _, part := range r.parts {
		root := part.Root
		throttling, twice := given(root.Fold("retry_throttling")), map[string]bool{}
		for _, method := range root.Fold("method_config").List() {
			names := grpcNames(method)
			if len(names) == 0 {
				r.quiet(method.At)
				r.unjudged(method.At, "", "a method config without names applies to no method: write {} for all of them")
			}
			for _, name := range names {
				if twice[name.route] || name.service == "" && name.method != "" {
					r.grpcName(name, method)
					continue
				}
				twice[name.route] = true
				r.grpcMethod(name, method, root, throttling)
			}
		}
	}
}

// grpcMethod reads what a method config says for one of its names. One without a
// policy does not retry.
func (r *reader) grpcMethod(name grpcName, n, root, throttling *tree.Node) {
	d := policyfile.Dependency{Name: name.route, Route: name.route, Service: name.service, At: n.At, Protocol: "grpc"}
	d.Policy.Kind = forbear.GRPC
	policy, codes := given(n.Fold("retry_policy")), "retryable_status_codes"
	hedging := given(n.Fold("hedging_policy"))
	if policy == nil {
		policy, codes = hedging, "non_fatal_status_codes"
	}
	if policy == nil {
		r.quiet(n.At)
		return
	}
	d.At = policy.At
	if !r.grpcValid(&d, n, policy, throttling, codes) {
		r.quiet(n.At)
		return
	}
	if tokens := throttling.Fold("max_tokens"); policy != hedging && grpcStifled(tokens) {
		r.grpcNote(tokens.At, "maxTokens "+tokens.Text()+" allows no retry: one failure halves the bucket (gRFC A6)")
		r.quiet(n.At)
		return
	}
	v := policy.Fold("max_attempts")
	m, _ := v.Number()
	if m > grpcMaxAttempts {
		r.unjudged(v.At, d.Name, "%s: gRPC clients cut maxAttempts %s to %d, unless their code allows more", d.Name, v.Text(), grpcMaxAttempts)
	}
	retries(&d, int(min(m, grpcMaxAttempts))-1, v.At)
	if policy == hedging {
		r.grpcHedging(&d, policy)
	} else {
		r.grpcWaits(&d, policy)
	}
	r.grpcTimes(&d, n, policy)
	r.grpcCodes(&d, policy.Fold(codes))
	r.grpcWrites(&d, name, policy.At)
	r.throttling(&d, root, throttling)
	r.add(d)
}

// grpcStifled reports whether a bucket of so many tokens lets no retry pass: it does while
// more than half of them are there, and the failure has taken one.
func grpcStifled(tokens *tree.Node) bool {
	n, ok := tokens.Number()
	return ok && n-1 <= n/2
}

// grpcNote notes once a file what is about all of a service config.
func (r *reader) grpcNote(at policyfile.Position, message string) {
	if !r.noted(at) {
		r.unjudged(at, "", "%s", message)
	}
}

// grpcWaits reads the backoff. gRFC A6 fixes the jitter, and no setting changes it.
func (r *reader) grpcWaits(d *policyfile.Dependency, policy *tree.Node) {
	first, _ := policy.Fold("initial_backoff").Span()
	most, _ := policy.Fold("max_backoff").Span()
	factor, _ := policy.Fold("backoff_multiplier").Number()
	d.SetPlace("backoff.base", policy.Fold("initial_backoff").At)
	d.SetPlace("backoff.cap", policy.Fold("max_backoff").At)
	grow(d, min(first, most), factor, most)
	// The longest wait is 20 % over the value.
	for i, step := range d.Policy.Backoff.Schedule {
		d.Policy.Backoff.Schedule[i] = step + step/5
	}
	if first == most || factor <= 1 {
		r.refuse(policy.At, "R-1", d, "backoff.base", "the waits do not grow: %v before every retry", min(first, most))
	}
	r.cannot(d, "R-1", "", "gRPC's own retries vary by 20%% around one wait (gRFC A6): that is not full jitter")
}

// grpcHedging reads a policy that sends a call several times without waiting for a
// failure.
func (r *reader) grpcHedging(d *policyfile.Dependency, policy *tree.Node) {
	delay := policy.Fold("hedging_delay")
	wait, _ := delay.Span()
	every := "all at once"
	if wait > 0 {
		every = "one every " + wait.String()
	}
	grow(d, wait, 1, 0)
	d.Policy.Backoff.Base, d.Policy.Backoff.Cap = 0, 0 // no backoff at all
	r.refuse(placed(delay, policy.At), "R-1", d, "backoff.jitter", "hedging sends up to %d copies of a call, %s, without backoff and jitter", d.Policy.Retries()+1, every)
}

// grpcTimes reads the deadlines. Without perAttemptRecvTimeout, which few clients know,
// one attempt may take all the time of the call.
func (r *reader) grpcTimes(d *policyfile.Dependency, n, policy *tree.Node) {
	if r.duration(d, "total", n.Get("timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(policy.At, "R-3", d, "total.missing", "no timeout bounds the call and its retries, unless the code sets a deadline")
	}
	r.duration(d, "per_attempt", policy.Fold("per_attempt_recv_timeout"), &d.Policy.PerAttempt)
	if d.Policy.PerAttempt == 0 {
		unbounded(d)
	}
}

// grpcCodes judges the retryable codes.
func (r *reader) grpcCodes(d *policyfile.Dependency, n *tree.Node) {
	for _, c := range n.List() {
		code := grpcCode(c)
		r.code(c.At, d, code, code)
	}
}

// throttling reads the token bucket as a budget: each success earns
// tokenRatio of a retry, which is a share of the successful calls. The
// bucket's size bounds a burst and is not judged.
func (r *reader) throttling(d *policyfile.Dependency, root, n *tree.Node) {
	if n == nil {
		d.Lacks = append(d.Lacks, "budget")
		every := policyfile.Dependency{Name: "every method", At: root.At}
		r.once(root.At, "R-7", &every, "budget", "no retryThrottling: every failed call of this service config is retried")
		return
	}
	share := n.Fold("token_ratio")
	ratio, _ := share.Number()
	d.SetPlace("budget", n.At)
	d.SetPlace("budget.ratio", share.At)
	d.Policy.Budget.Ratio = min(ratio, 1)
}

// grpcName is one name of a method config: a method, all of a service, or all there are.
type grpcName struct {
	service, method string
	route           string // "pay.v1.Payments/Charge"
}

// grpcNames returns the names of a method config. A name without a service means every
// method.
func grpcNames(n *tree.Node) (names []grpcName) {
	for _, node := range n.Get("name").List() {
		name := grpcName{service: node.Get("service").Text(), method: node.Get("method").Text()}
		switch {
		case name.service == "":
			name.route = "all-methods"
		case name.method == "":
			name.route = name.service
		default:
			name.route = name.service + "/" + name.method
		}
		names = append(names, name)
	}
	return names
}
