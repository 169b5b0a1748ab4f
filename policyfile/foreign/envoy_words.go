package foreign

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// condition is what a word of retry_on means for.
type condition uint8

const (
	// reaches: the service may have seen the request, and done what it asks for.
	reaches condition = 1 << iota
	// responds: a response leads to the retry, and may carry a Retry-After.
	responds
)

// envoyWords are the conditions of x-envoy-retry-on and x-envoy-retry-grpc-on, in the
// documentation of Envoy's router. Others have no effect.
//
// Nothing has reached the service when no connection came about, when the server
// refused the stream, or when Envoy had not yet sent the headers; a limiter's 429
// comes from an Envoy before the service. A reset, in contrast, may follow on work
// that was done, and so may every status.
var envoyWords = map[string]condition{
	"5xx":                        reaches | responds,
	"gateway-error":              reaches | responds,
	"reset":                      reaches,
	"reset-before-request":       0,
	"connect-failure":            0,
	"refused-stream":             0,
	"envoy-ratelimited":          responds,
	"retriable-4xx":              reaches | responds,
	"retriable-status-codes":     reaches | responds,
	"retriable-headers":          reaches | responds,
	"http3-post-connect-failure": reaches,
	"cancelled":                  reaches | responds,
	"deadline-exceeded":          reaches | responds,
	"internal":                   reaches | responds,
	"resource-exhausted":         reaches | responds,
	"unavailable":                reaches | responds,
}

// conditionNames are the words that a request or a policy may have.
var conditionNames = slices.Sorted(maps.Keys(envoyWords))

// envoyCode returns the gRPC code that a condition is about.
func envoyCode(word string) (name string, ok bool) {
	name = strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	_, ok = grpccode.Parse(name)
	return name, ok && envoyWords[word] != 0
}

// usual reports whether a condition stands in the defaults of a product, and so in many files.
func usual(word string) bool {
	return slices.Contains(strings.Split(istioRetryOn+","+egTriggers, ","), word)
}

// only500 says how each product retries of 5xx what R-4 lists.
var only500 = map[string]string{
	"envoy":        "write gateway-error,retriable-status-codes with retriable_status_codes: [500]",
	"istio":        "write gateway-error,500",
	"envoygateway": "write gateway-error and retriable-status-codes with httpStatusCodes: [500]",
}

// misspeltWords looks for words that are not in a list of conditions.
func (r *reader) misspeltWords(on *tree.Node, d *policyfile.Dependency, known []string, becomes string) {
	for word := range strings.SplitSeq(on.Text(), ",") {
		word = strings.TrimSpace(word)
		if word == "" || slices.Contains(known, word) {
			continue
		}
		hint := nearest.Hint(word, known, "")
		if _, err := strconv.Atoi(word); err == nil {
			hint = numbers[r.format]
		}
		r.misspelt(on.At, d, word, becomes, hint)
	}
}

// envoyMisspelt looks for words that Envoy ignores in a policy, and in the header that asks
// for retries. They may be all that the policy has.
func (e *envoyReader) envoyMisspelt(x *envoyRoute, cluster string) {
	on := x.policy.Fold("retry_on")
	d := policyfile.Dependency{Name: cmp.Or(cluster, "unnamed"), Route: x.identity(), At: placed(on, x.node.At)}
	becomes := "is not a condition, and Envoy ignores it"
	if !x.retries() && x.asks == nil {
		becomes += ", so nothing is retried"
	}
	e.misspeltWords(on, &d, conditionNames, becomes)
	e.asked(&d, x.asks.Get("key").Text(), x.asks.Get("value"))
}

// numbers say where each product has its statuses, which are not conditions.
var numbers = map[string]string{
	"envoy":        ": list it in retriable_status_codes, with retriable-status-codes here",
	"istio":        ": Istio takes only statuses that have a name",
	"envoygateway": ": list it in httpStatusCodes, with retriable-status-codes here",
}

// asked looks for unknown words in what a header asks Envoy for.
func (r *reader) asked(d *policyfile.Dependency, header string, value *tree.Node) {
	if strings.Contains(value.Text(), "%") {
		return // from the request
	}
	grpc := strings.EqualFold(header, "x-envoy-retry-grpc-on")
	if !grpc && !strings.EqualFold(header, "x-envoy-retry-on") {
		return
	}
	known := slices.DeleteFunc(slices.Clone(conditionNames), func(word string) bool { _, code := envoyCode(word); return code != grpc })
	r.misspeltWords(value, d, known, "is not a word of "+header+", and Envoy ignores it")
}
