package foreign

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of Envoy's route, of its RetryPolicy and of a cluster. A file that leaves a
// field out gets these, and is judged by them.
const (
	envoyTimeout = 15 * time.Second
	envoyBase    = 25 * time.Millisecond
	envoyRetries = 1
	envoyConnect = 5 * time.Second
	envoyPercent = 20.0
	envoyFloor   = 3
	// envoyReset is the longest Retry-After that rate_limited_retry_back_off obeys.
	envoyReset = 300 * time.Second
)

// words returns the conditions of the policy that have an effect. The lists of codes and
// headers count only with their words, and the words only with their lists.
func (x *envoyRoute) words(on string) (words []string) {
	for word := range strings.SplitSeq(on, ",") {
		word = strings.TrimSpace(word)
		_, known := envoyWords[word]
		switch {
		case !known, slices.Contains(words, word):
		case word == "retriable-status-codes" && len(x.policy.Fold("retriable_status_codes").List()) == 0:
		case word == "retriable-headers" && len(x.policy.Fold("retriable_headers").List()) == 0:
		default:
			words = append(words, word)
		}
	}
	return words
}

// envoyConditions judges when a route retries.
func (e *envoyReader) envoyConditions(d *policyfile.Dependency, x *envoyRoute) {
	if d.Policy.Disabled {
		return
	}
	words := x.words(x.policy.Fold("retry_on").Text())
	on := &tree.Node{Value: strings.Join(words, ","), At: placed(x.policy.Fold("retry_on"), d.At)}
	safe := boundToSafe(x.node.Get("match").Fold("headers").List()) || askedSafely(x.policy.Fold("retriable_request_headers").List())
	responded := e.conditions(d, on, x.policy.Fold("retriable_status_codes"), safe)
	if slices.Contains(words, "retriable-headers") {
		e.statusHeaders(d, x.policy.Fold("retriable_headers"))
	}
	// A hedge sends the request again while the first one is under way, whatever
	// retry_on says.
	hedge := cmp.Or(x.action.Fold("hedge_policy"), x.host.Fold("hedge_policy")).Fold("hedge_on_per_try_timeout")
	if hedge.True() && !safe && d.Policy.PerAttempt < d.Policy.Total {
		e.refuse(hedge.At, "R-6", d, "methods", "a hedge sends the request a second time in parallel, even a POST without an Idempotency-Key: match on :method")
	}
	if responded {
		e.retryAfter(d, x.policy)
	}
	if !x.removes("x-envoy-max-retries") {
		if e.told.first(d.At.File, "internal") {
			e.unjudged(d.At, d.Name, "callers that Envoy considers internal may ask for any number of retries with x-envoy-max-retries: list it in request_headers_to_remove")
		}
	}
}

// conditions judges retry_on, in Envoy's words, which Istio and others use too.
// Conditions that may repeat a request the service has seen need idempotent
// methods. It reports whether responses are retried, and not only connections.
func (r *reader) conditions(d *policyfile.Dependency, on, codes *tree.Node, idempotent bool) (responded bool) {
	r.misspeltWords(on, d, conditionNames, "is not a condition, and the resource is refused")
	repeats := ""
	for word := range strings.SplitSeq(on.Text(), ",") {
		word = strings.TrimSpace(word)
		means := envoyWords[word]
		switch word {
		case "5xx":
			r.terminals(on.At, d, word, only500[r.format])
		// The name suggests all of 4xx; 409 is the one status that it
		// retries.
		case "retriable-4xx":
			r.refuse(on.At, "R-4", d, "classify.http_409", "retriable-4xx retries 409, and a conflict does not go away: drop it")
		case "retriable-status-codes":
			r.statuses(d, codes.List())
		}
		if name, ok := envoyCode(word); ok {
			r.code(on.At, d, name, word)
		}
		responded = responded || means&responds != 0
		if means&reaches != 0 {
			repeats = cmp.Or(repeats, word)
		}
	}
	methodMatch := "match on the method"
	if r.format == "envoygateway" {
		methodMatch += " in the route"
	}
	if repeats != "" && !idempotent && !d.Policy.Disabled {
		r.refuse(on.At, "R-6", d, "methods", "%s repeats operations that the service may have carried out, even a POST without an Idempotency-Key: %s",
			repeats, methodMatch)
	}
	return responded
}

// statusHeaders judges retriable_headers, which may match the status too.
func (r *reader) statusHeaders(d *policyfile.Dependency, matchers *tree.Node) {
	for _, h := range matchers.List() {
		if h.Get("name").Text() != ":status" {
			continue
		}
		var all []int
		for status := lowest; status <= highest; status++ {
			if accepts(h, strconv.Itoa(status)) {
				all = append(all, status)
			}
		}
		r.retried(h.At, d, ":status", all, "")
	}
}

// retryAfter judges R-5. Envoy reads Retry-After only where
// rate_limited_retry_back_off names it, and ignores one over its max_interval. A file
// says so in one finding.
func (r *reader) retryAfter(d *policyfile.Dependency, policy *tree.Node) {
	back := policy.Fold("rate_limited_retry_back_off")
	named := slices.ContainsFunc(back.Fold("reset_headers").List(), func(h *tree.Node) bool {
		return strings.EqualFold(h.Get("name").Text(), "Retry-After")
	})
	if !named {
		r.unheeded(d, placed(back, d.At), "Envoy ignores Retry-After here: name it in rate_limited_retry_back_off")
		return
	}
	d.Lacks = append(d.Lacks, "backoff.cap") // the service chooses
	most := envoyReset
	v := back.Fold("max_interval")
	if t, ok := v.Span(); ok {
		most = t
	}
	if d.Policy.Total > most {
		r.unheeded(d, placed(v, back.At), "a Retry-After of more than %v is ignored, but the call may take %v", most, d.Policy.Total)
	}
}

// envoyTimes reads the durations. Envoy's timeout covers all attempts
// together, and a route without per_try_timeout lets one attempt take all of
// it. A timeout in a header that the route adds comes too late: the router has set
// its clock by then.
func (r *reader) envoyTimes(d *policyfile.Dependency, action, policy *tree.Node, at policyfile.Position) {
	d.Policy.Total = envoyTimeout
	timeout := action.Fold("timeout")
	r.duration(d, "total", timeout, &d.Policy.Total)
	// The duration of the stream includes all retries too.
	stream := action.Fold("max_stream_duration", "max_stream_duration")
	if t, ok := stream.Span(); ok && t > 0 && (d.Policy.Total == 0 || t < d.Policy.Total) {
		d.SetPlace("total", stream.At)
		d.Policy.Total = t
	}
	// Zero switches the timeout off, in contrast to an absent field.
	if d.Policy.Total == 0 && !d.Policy.Disabled {
		r.refuse(timeout.At, "R-3", d, "total.missing", "timeout %s turns the route's timeout off", timeout.Value)
		if policy.Fold("per_try_timeout") == nil {
			unbounded(d) // the idle timeout bounds a silence
		}
	}
	back := policy.Fold("retry_back_off")
	r.envoyWaits(d, perTryOf(policy), back.Fold("base_interval"), back.Fold("max_interval"), at)
}

// perTryOf is what bounds an attempt. One during which nothing comes ends by the idle
// timeout.
func perTryOf(policy *tree.Node) *tree.Node {
	return cmp.Or(policy.Fold("per_try_timeout"), policy.Fold("per_try_idle_timeout"))
}

// envoyWaits reads the durations of one attempt and of the waits, in what configures
// Envoy by other words. The defaults are Envoy's.
func (r *reader) envoyWaits(d *policyfile.Dependency, perTry, base, most *tree.Node, at policyfile.Position) {
	d.Policy.PerAttempt = d.Policy.Total // Envoy's default
	d.SetPlace("per_attempt", at)
	r.attempt(d, perTry)
	d.Policy.Backoff.Base = envoyBase
	r.duration(d, "backoff.base", base, &d.Policy.Backoff.Base)
	// Envoy's documented default: ten times the base.
	d.Policy.Backoff.Cap = saturated(10, d.Policy.Backoff.Base)
	r.duration(d, "backoff.cap", most, &d.Policy.Backoff.Cap)
}

// connects is for a policy that retries nothing but failed connections, and has no
// time-out for an attempt: one that hangs later is not retried, so that it takes no
// retry's time. absent is the connection's time-out where none is written.
func connects(d *policyfile.Dependency, words []string, perTry, timeout *tree.Node, absent time.Duration) {
	if t, ok := timeout.Span(); ok {
		absent = t
	}
	if perTry == nil && absent < d.Policy.Total && !slices.ContainsFunc(words, func(w string) bool { means, known := envoyWords[w]; return !known || means != 0 }) {
		unbounded(d)
	}
}
