package foreign

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of Polly's RetryStrategyOptions, and of HttpStandardResilienceOptions.
const (
	pollyRetries    = 3
	pollyDelay      = 2 * time.Second
	standardTotal   = 30 * time.Second
	standardAttempt = 10 * time.Second
)

// pollyKeys are settings of a retry strategy that no other library's section has beside
// MaxRetryAttempts; the first is of the strategy for HTTP alone.
var pollyKeys = []string{"ShouldRetryAfterHeader", "BackoffType", "UseJitter"}

// pipelineKeys stand beside the section Retry of the standard pipeline for HTTP.
var pipelineKeys = []string{"AttemptTimeout", "TotalRequestTimeout", "CircuitBreaker"}

// pollySections returns the pairs of a map that are sections of a retry strategy.
func pollySections(n *tree.Node) (found []tree.Pair) {
	for _, p := range n.Pairs {
		if p.Value.Map() && strings.Contains(strings.ToLower(p.Key), "retry") && p.Value.Fold("MaxRetryAttempts") != nil {
			found = append(found, p)
		}
	}
	return found
}

// pipeline reports whether n is of the form of HttpStandardResilienceOptions: a section
// Retry, perhaps without a count, beside two of the others. A count or a time under
// another name is for a class of the program's own, which has its own defaults.
func pipeline(n *tree.Node) bool {
	beside := 0
	if slices.ContainsFunc(n.Pairs, ownTime) || ownCount(n.Fold("Retry")) {
		return false
	}
	for _, key := range pipelineKeys {
		if n.Fold(key).Map() {
			beside++
		}
	}
	return beside > 0 && pollySettings(n.Fold("Retry")) || beside > 1 && n.Fold("TotalRequestTimeout").Map()
}

// ownTime reports whether a section has a time-out where the pipeline has none.
func ownTime(p tree.Pair) bool {
	standard := p.Value.Map() && (tree.Same(p.Key, "AttemptTimeout") || tree.Same(p.Key, "TotalRequestTimeout"))
	return strings.Contains(strings.ToLower(p.Key), "timeout") && !standard
}

// ownCount reports whether a section counts retries under a name that Polly does not have.
func ownCount(n *tree.Node) bool {
	return n.Fold("MaxRetryAttempts") == nil && slices.ContainsFunc(n.Fields(), func(p tree.Pair) bool { return aboutRetries(p.Key) })
}

// pollySettings reports whether a section has any setting of a retry strategy.
func pollySettings(n *tree.Node) bool {
	return n.Fold("MaxRetryAttempts") != nil || slices.ContainsFunc(pollyKeys, func(key string) bool { return n.Fold(key) != nil })
}

// claimsDotnet knows a map of .NET's configuration by the sections of Polly in it, and of
// Microsoft.Extensions.Http.Resilience.
func claimsDotnet(n *tree.Node) bool { return len(pollySections(n)) > 0 || pipeline(n) }

// ownDotnet returns the sections that are read, and those that go with them.
func ownDotnet(n *tree.Node) (own []*tree.Node) {
	for _, p := range pollySections(n) {
		own = append(own, p.Value)
	}
	if pipeline(n) {
		for _, p := range n.Pairs {
			if slices.ContainsFunc(append(pipelineKeys, "Retry", "Hedging"), func(key string) bool { return tree.Same(p.Key, key) }) {
				own = append(own, p.Value)
			}
		}
	}
	return own
}

// dotnet reads the sections that code binds to retry strategies. Which client they are
// for the code says alone; they are named by where they stand.
func (r *reader) dotnet() {
	for _, part := range r.parts {
		sections := pollySections(part.Root)
		if standard := pipeline(part.Root); standard && part.Root.Fold("Retry", "MaxRetryAttempts") == nil {
			// Silence means the defaults.
			sections = append(sections, tree.Pair{Key: "Retry", At: part.Root.At, Value: part.Root.Fold("Retry")})
		}
		for _, p := range sections {
			r.polly(pollyName(part.Path, p.Key), p, part.Root)
		}
		if v := part.Root.Fold("Hedging", "MaxHedgedAttempts"); v != nil {
			r.unjudged(v.At, "", "hedging sends a request again, %s times, while the first one is under way: it is not judged", v.Text())
		}
	}
}

// pollyName names a section by the keys above it, without those that say nothing of
// whom it is for.
func pollyName(path, key string) string {
	var names []string
	for name := range strings.SplitSeq(path+"."+key, ".") {
		switch strings.ToLower(name) {
		case "", "retry", "resilience", "standardresilience", "httpclients", "httpclient", "polly", "standard":
		default:
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, "."), "HTTP clients")
}

// polly reads one section. MaxRetryAttempts counts retries.
func (r *reader) polly(name string, p tree.Pair, around *tree.Node) {
	n, at := p.Value, p.At
	d := policyfile.Dependency{Name: name, At: at, Protocol: "http"}
	count := n.Fold("MaxRetryAttempts")
	m, ok := count.Number()
	if count == nil {
		m, ok = pollyRetries, true
	} else {
		at = count.At
	}
	if !ok {
		r.open(at, &d, "%s: MaxRetryAttempts %q cannot be read", name, count.Text())
	}
	if ok && m < 1 {
		r.refuse(at, "", &d, "refused", "Polly refuses a MaxRetryAttempts below 1: leave the strategy out in the code instead")
		r.quiet(p.At)
		return
	}
	retries(&d, int(min(max(m, 1), math.MaxInt32)), at)
	// HTTP's strategy has other defaults than Polly's own.
	http := n.Fold("ShouldRetryAfterHeader") != nil || tree.Same(p.Key, "Retry") && pipeline(around)
	r.pollyWaits(&d, p, http)
	r.pollyTimes(&d, n, around, http)
	if v := n.Fold("ShouldRetryAfterHeader"); v != nil && !v.True() {
		r.refuse(v.At, "R-5", &d, "retry_after", "ShouldRetryAfterHeader is off: a server that asks for a pause is asked again too early")
	}
	r.cannot(&d, "R-6", "", "Polly repeats every method unless the code says DisableForUnsafeHttpMethods: no section of settings does")
	r.cannot(&d, "R-7", "budget", "Polly has no retry budget")
	r.cannot(&d, "R-9", "", "the strategy for HTTP retries every HttpRequestException, certificate errors too, unless the code says otherwise")
	r.add(d)
}

// pollyWaits reads the backoff. Exponential waits with jitter are decorrelated, which R-1
// allows; the other types differ by a quarter at most.
func (r *reader) pollyWaits(d *policyfile.Dependency, p tree.Pair, http bool) {
	n := p.Value
	delay, most := pollyDelay, time.Duration(0)
	r.clock(d, "backoff.base", n.Fold("Delay"), &delay)
	r.clock(d, "backoff.cap", n.Fold("MaxDelay"), &most)
	kind, jitter := n.Fold("BackoffType"), n.Fold("UseJitter")
	written := kind != nil || jitter != nil || http
	text := strings.ToLower(kind.Text())
	exponential := text == "exponential" || text == "2" || kind == nil && http
	random := jitter.True() || jitter == nil && http
	grow(d, delay, map[bool]float64{true: 2, false: 1}[exponential], most)
	if text == "linear" || text == "1" {
		wait(d, func(retry int) time.Duration { return grows(delay, float64(retry+1), most)(1) })
	}
	place := p.At
	if kind != nil {
		place = kind.At
	}
	switch {
	case !written:
		// Other libraries have a key of that name; the code says which it is.
		r.unjudged(p.At, d.Name, "%s: its waits are up to the code that reads this section", d.Name)
	case exponential && random:
		d.Policy.Backoff.Schedule, d.Policy.Backoff.Jitter = nil, forbear.JitterDecorrelated
	case exponential:
		if jitter != nil {
			place = jitter.At
		}
		r.refuse(place, "R-1", d, "backoff.jitter", "no jitter: set UseJitter")
	case kind == nil && !jitter.True():
		r.refuse(jitter.At, "R-1", d, "backoff.jitter", "no jitter: set UseJitter")
	case kind == nil:
		r.refuse(p.At, "R-1", d, "backoff.base", "BackoffType is missing: unless the code binds this to the strategy for HTTP, the wait is the same before every retry")
	default:
		r.refuse(place, "R-1", d, "backoff.base", "BackoffType %s is not exponential", kind.Text())
	}
}

// pollyTimes reads the bounds of the pipeline around a strategy.
func (r *reader) pollyTimes(d *policyfile.Dependency, n, around *tree.Node, http bool) {
	standard := http && pipeline(around)
	if standard {
		d.Policy.Total, d.Policy.PerAttempt = standardTotal, standardAttempt
	}
	r.clock(d, "total", around.Fold("TotalRequestTimeout", "Timeout"), &d.Policy.Total)
	r.clock(d, "per_attempt", around.Fold("AttemptTimeout", "Timeout"), &d.Policy.PerAttempt)
	if d.Policy.PerAttempt == 0 {
		unbounded(d)
	}
	if d.Policy.Total == 0 {
		d.Lacks = append(d.Lacks, "total.missing")
		r.unjudged(n.Place(), d.Name, "%s: what bounds a call and its retries together (R-3) is up to the code", d.Name)
	}
}

// clock reads a duration of .NET that the file may leave out.
func (r *reader) clock(d *policyfile.Dependency, field string, n *tree.Node, into *time.Duration) {
	if n == nil {
		return
	}
	d.SetPlace(field, n.At)
	if v, ok := clockTime(n.Text()); ok {
		*into = v
		return
	}
	r.unjudged(n.At, d.Name, "%s: %s is not a duration of .NET, such as \"00:00:02\"", d.Name, strconv.Quote(n.Text()))
}
