package foreign

import (
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of a retry policy ("What is a Temporal Retry Policy?"): the longest wait
// is a hundred times the first one, and there is no limit.
const (
	temporalFirst       = time.Second
	temporalCoefficient = 2.0
	temporalLongest     = 100
)

// temporalKeys are the settings of a retry policy. One of them beside others' might be
// another program's.
var temporalKeys = []string{"maximumAttempts", "initialInterval", "backoffCoefficient", "maximumInterval", "nonRetryableErrorTypes"}

// claimsTemporal knows a map by its retry policy, and the dynamic configuration of a
// server by its defaults for those that leave something out.
func claimsTemporal(n *tree.Node) bool {
	if policy := n.Get(temporalPolicies...); policy.Map() {
		found := 0
		for _, key := range temporalKeys {
			if policy.Fold(key) != nil {
				found++
			}
		}
		return found > 1 || found == 1 && len(policy.Pairs) == 1
	}
	settings := 0
	for _, p := range n.Pairs {
		if temporalDefault(p) {
			return true
		}
		if temporalSetting(p) {
			settings++
		}
	}
	return settings > 1
}

// ownTemporal returns the policy in a map, or none for the dynamic configuration.
func ownTemporal(n *tree.Node) (own []*tree.Node) {
	if policy := n.Get(temporalPolicies...); policy.Map() {
		own = append(own, policy)
	}
	return own
}

// temporalSettings are the services that settings of the server's dynamic configuration
// begin with.
var temporalSettings = []string{"frontend", "history", "matching", "worker", "system", "limit"}

// temporalSetting reports whether a pair is a setting of the dynamic configuration: a
// list of values.
func temporalSetting(p tree.Pair) bool {
	service, _, dotted := strings.Cut(p.Key, ".")
	return dotted && slices.Contains(temporalSettings, service) && len(p.Value.List()) > 0 && p.Value.List()[0].Has("value")
}

// temporalPolicies are the spellings of the key of a policy.
var temporalPolicies = []string{"retryPolicy", "retry_policy", "RetryPolicy"}

// temporalDefault reports whether a setting of the dynamic configuration is a default
// policy: a list of values, each for the namespaces that it names.
func temporalDefault(p tree.Pair) bool {
	named := strings.HasSuffix(p.Key, ".defaultActivityRetryPolicy") || strings.HasSuffix(p.Key, ".defaultWorkflowRetryPolicy")
	return named && len(p.Value.List()) > 0
}

// temporal reads the policies of activities and workflows. Code may set others, which
// no file shows.
func (r *reader) temporal() {
	for _, part := range r.parts {
		if !claimsTemporal(part.Root) || !r.temporalMap(part.Root) {
			r.quiet(part.Root.At)
			r.unjudged(part.Root.At, "", "no history.defaultActivityRetryPolicy is here: activities whose code leaves maximumAttempts out are retried without an end")
		}
	}
}

// temporalMap reads the policies that stand in one map, and reports whether there are any.
func (r *reader) temporalMap(n *tree.Node) (found bool) {
	if policy := n.Get(temporalPolicies...); policy.Map() {
		name := "an activity"
		for _, key := range []string{"name", "activityName", "activity", "workflow", "id"} {
			if text := n.Fold(key).Text(); text != "" {
				name = "activity " + text
				break
			}
		}
		r.temporalPolicy(work(name, "", policy.At), policy, n)
		found = true
	}
	for _, p := range n.Pairs {
		if !temporalDefault(p) {
			continue
		}
		for _, v := range p.Value.List() {
			if value := v.Get("value"); value.Map() {
				d := work("Temporal's "+p.Key, v.Get("constraints").Get("namespace").Text(), value.At)
				r.temporalPolicy(d, value, nil)
				found = true
			}
		}
	}
	return found
}

// temporalPolicy judges one policy. around is the map of the options that it stands
// in, or nil.
func (r *reader) temporalPolicy(d policyfile.Dependency, policy, around *tree.Node) {
	most := policy.Fold("maximumAttempts")
	if m, ok := count(most); ok && m > 0 {
		retries(&d, m-1, most.At)
	} else if ok || most.Text() == "" {
		at := policy.At
		if most != nil {
			at = most.At
		}
		r.limitless(at, &d, "no maximumAttempts bounds it: it is retried until it succeeds or its time is over")
	} else {
		r.open(most.At, &d, "maximumAttempts %q is no number: how often %s is retried is not known", most.Text(), d.Name)
	}
	if d.Policy.Disabled {
		r.quiet(policy.At)
		return
	}
	waits := r.temporalWaits(&d, policy)
	r.temporalTimes(&d, around, waits)
	r.cannot(&d, "R-1", "", "Temporal's waits have no jitter that a policy could set")
	r.again(&d, "Temporal", "an activity")
	r.add(d)
}

// temporalWaits reads the waits, and returns what they come to.
func (r *reader) temporalWaits(d *policyfile.Dependency, policy *tree.Node) time.Duration {
	first, factor := temporalFirst, temporalCoefficient
	if t, ok := r.temporalTime(d, policy, "initialInterval"); ok && t > 0 {
		first = t
	}
	coefficient := policy.Fold("backoffCoefficient")
	if f, ok := coefficient.Number(); ok && f > 0 {
		factor = f
	}
	if factor <= 1 && d.Policy.Retries() > 1 {
		r.refuse(coefficient.At, "R-1", d, "backoff.base", "it waits for %v before every retry: a coefficient of %v does not let it grow", first, factor)
	}
	most := saturated(temporalLongest*float64(first), 1)
	if f, ok := policy.Fold("maximumIntervalCoefficient").Number(); ok && f >= 1 {
		most = saturated(f*float64(first), 1)
	}
	if t, ok := r.temporalTime(d, policy, "maximumInterval"); ok && t > 0 {
		most = t
	}
	return wait(d, grows(first, max(factor, 1), most))
}

// temporalTimes reads the timeouts beside a policy. Where none is there they may be in
// code, which is not seen here.
func (r *reader) temporalTimes(d *policyfile.Dependency, around *tree.Node, waits time.Duration) {
	each, own := r.temporalTime(d, around, "startToCloseTimeout")
	if own = own && each > 0; own {
		d.Policy.PerAttempt = each
		d.SetPlace("per_attempt", around.Fold("startToCloseTimeout").At)
	} else {
		defer unbounded(d)
	}
	all := around.Fold("scheduleToCloseTimeout")
	if t, ok := r.temporalTime(d, around, "scheduleToCloseTimeout"); ok && t > 0 {
		d.SetPlace("total", all.At)
		d.Policy.Total = t
		return
	}
	switch {
	case around == nil:
		r.cannot(d, "R-3", "total.missing", "a default policy of Temporal has no total: each activity brings its own scheduleToCloseTimeout")
	case own && all == nil && !d.AtLeast:
		at, _ := d.Place("per_attempt")
		d.SetPlace("total", at)
		d.Policy.Total = saturated(float64(each)*float64(d.Policy.Retries()+1)+float64(waits), 1)
	case own && all == nil:
		r.refuse(d.At, "R-3", d, "total.missing", "no scheduleToCloseTimeout bounds it with its retries")
	default:
		d.Lacks = append(d.Lacks, "total.missing")
		r.unjudged(d.At, d.Name, "no scheduleToCloseTimeout of %s is here: what bounds it with its retries is not judged", d.Name)
	}
}

// temporalTime reads a duration with a unit, or a number of seconds under a key that
// says so. A bare number means what the program says, and is not read.
func (r *reader) temporalTime(d *policyfile.Dependency, n *tree.Node, key string) (time.Duration, bool) {
	if t, ok := seconds(n.Fold(key + "InSeconds")); ok {
		return t, true
	}
	v := given(n.Fold(key))
	t, ok := v.Span()
	if v != nil && !ok {
		r.unjudged(v.At, d.Name, "%s: %s %q is no duration, and what it says is not known", d.Name, key, v.Text())
	}
	return t, ok
}
