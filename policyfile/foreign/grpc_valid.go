package foreign

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// grpcValid looks for what gRPC demands of a policy (gRFC A6): a client refuses the
// service config as a whole without it, and its calls are as if there were none.
func (r *reader) grpcValid(d *policyfile.Dependency, method, policy, throttling *tree.Node, codes string) bool {
	wrong := grpcWrong(policy, codes)
	if grpcNoSpan(method.Get("timeout")) {
		wrong = append(wrong, "timeout is not a duration such as \"3s\"")
	}
	most, ok := throttling.Fold("max_tokens").Number()
	ratio, sure := throttling.Fold("token_ratio").Number()
	switch {
	case throttling == nil:
	case !throttling.Map():
		wrong = append(wrong, "retryThrottling is not an object")
	case !ok || !(most > 0 && most <= 1000):
		wrong = append(wrong, "maxTokens is not a number over 0 and up to 1000")
	case !sure || !(ratio > 0) || math.IsInf(ratio, 0):
		wrong = append(wrong, "tokenRatio is not a number over 0")
	}
	if len(wrong) > 0 {
		r.grpcRefuses(policy.At, d, strings.Join(wrong, ", "))
	}
	return len(wrong) == 0
}

// grpcRefuses records why a client refuses a service config. One reason is enough for
// gRPC, and for the reader.
func (r *reader) grpcRefuses(at policyfile.Position, d *policyfile.Dependency, wrong string) {
	if r.told.first(d.At.File, "refused") {
		r.refuse(at, "", d, "refused", "gRPC refuses the whole service config: %s", wrong)
	}
}

// grpcName records a name that no method config may have: one that stands twice, or a
// method without its service.
func (r *reader) grpcName(name grpcName, method *tree.Node) {
	d := policyfile.Dependency{Name: name.route, Route: name.route, At: method.At, Protocol: "grpc"}
	wrong := "the name " + name.route + " appears twice"
	if name.service == "" && name.method != "" {
		wrong = "the method " + name.method + " has no service"
	}
	r.grpcRefuses(method.At, &d, wrong)
	r.quiet(method.At)
}

// grpcWrong says what is wrong with a policy, of which codes is the list of statuses.
func grpcWrong(policy *tree.Node, codes string) (wrong []string) {
	if m, ok := policy.Fold("max_attempts").Number(); !ok || m < 2 || m != math.Trunc(m) {
		wrong = append(wrong, "maxAttempts is not a number of at least 2")
	}
	if codes == "retryable_status_codes" {
		for _, key := range []string{"initialBackoff", "maxBackoff"} {
			if t, ok := grpcSpan(policy.Fold(key)); !ok || t == 0 {
				wrong = append(wrong, key+" is not a duration such as \"0.1s\"")
			}
		}
		if m, ok := policy.Fold("backoff_multiplier").Number(); !ok || m <= 0 || math.IsInf(m, 0) {
			wrong = append(wrong, "backoffMultiplier is not a number over 0")
		}
		if len(policy.Fold(codes).List()) == 0 {
			wrong = append(wrong, "retryableStatusCodes is empty")
		}
	} else if grpcNoSpan(policy.Fold("hedging_delay")) {
		wrong = append(wrong, "hedgingDelay is not a duration such as \"0.1s\"")
	}
	for _, c := range policy.Fold(codes).List() {
		if code := grpcCode(c); !slices.Contains(grpccode.Names[:], code) {
			wrong = append(wrong, c.Text()+" is not a status code"+nearest.Hint(code, grpccode.Names[:], ""))
		}
	}
	return wrong
}

// grpcSpan reads a duration of protobuf's JSON form, which has seconds alone.
func grpcSpan(n *tree.Node) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(n.Text(), "s")
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	return n.Span()
}

// grpcNoSpan reports whether a text is given that is no duration. A map of seconds and
// nanos is Node's.
func grpcNoSpan(n *tree.Node) bool {
	_, ok := grpcSpan(n)
	return n.Text() != "" && !ok
}

// grpcCode returns the name of a code, which gRPC accepts by number, and by name in any
// case.
func grpcCode(n *tree.Node) string {
	if i, ok := n.Number(); ok && i >= 0 && i < float64(len(grpccode.Names)) {
		return grpccode.Names[int(i)]
	}
	return strings.ToUpper(n.Text())
}
