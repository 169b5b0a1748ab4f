package foreign

import (
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of a retrier (Amazon States Language, "Retrying after an error"), and
// the longest that a Lambda function and an HTTP task may run.
const (
	statesRetries = 3
	statesWait    = time.Second
	statesRate    = 2.0
	lambdaTimeout = 15 * time.Minute
	httpTimeout   = 60 * time.Second
)

// claimsStates knows a state machine by what it cannot do without.
func claimsStates(n *tree.Node) bool {
	return n.Get("StartAt").Text() != "" && n.Get("States").Map()
}

// stepFunctions reads state machines of AWS Step Functions. Inner ones belong to the
// state that they stand in.
func (r *reader) stepFunctions() {
	for _, part := range r.parts {
		m := &machine{reader: r, root: part.Root, total: part.Root.Get("TimeoutSeconds")}
		if !m.states(part.Root) {
			r.quiet(part.Root.At)
		}
	}
}

// machine is a state machine that is being read.
type machine struct {
	*reader
	root, total *tree.Node
	said        bool // that nothing bounds it in time
}

// states reads the states at one level of a machine, and reports whether one of them
// retries.
func (m *machine) states(n *tree.Node) (found bool) {
	if !n.Get("States").Map() {
		return false
	}
	level := map[string]*tree.Node{}
	for _, p := range n.Get("States").Pairs {
		level[p.Key] = p.Value
	}
	for _, p := range n.Get("States").Pairs {
		inner := false
		for _, of := range append(slices.Clone(p.Value.Get("Branches").List()), p.Value.Get("ItemProcessor", "Iterator")) {
			inner = m.states(of) || inner
		}
		found = m.state(p, level, inner) || inner || found
	}
	return found
}

// state judges the retriers of one state together: each counts its own errors, so
// that different ones may use up all of them. level has the states beside it.
func (m *machine) state(p tree.Pair, level map[string]*tree.Node, inner bool) bool {
	n := p.Value
	d := work("state "+p.Key, m.root.Get("StartAt").Text(), n.At)
	all, worst, open := 0, 0, false
	var main *tree.Node // the retrier with the most retries
	retriers := n.Get("Retry").List()
	for _, v := range retriers {
		count, ok := statesCount(v)
		if !ok {
			m.open(v.Get("MaxAttempts").At, &d, "MaxAttempts %q is not a number: how often %s is retried is unknown", v.Get("MaxAttempts").Text(), d.Name)
			open, count = true, 1
		}
		if all += count; count > worst {
			worst, main = count, v
		}
	}
	catch, bounded := comesBack(level, p.Key)
	if all == 0 && catch == nil {
		return false
	}
	place := placed(main.Get("MaxAttempts"), placed(main, catch.Place()))
	if all > 0 || bounded {
		retries(&d, all, place)
	}
	if open && all == 1 {
		d.Policy.MaxRetries = 0 // not known at all: the default of the kind
	}
	switch {
	case bounded:
		m.open(catch.At, &d, "a Catch of %s leads back to it: the choice between decides whether and how often it runs again", d.Name)
	case catch != nil:
		m.limitless(catch.At, &d, "its Catch leads back to it without a choice between, so it runs until it succeeds")
	}
	if inner {
		m.open(n.At, &d, "%s retries states that also retry: their attempts multiply", d.Name)
	}
	m.waits(&d, retriers)
	m.errors(&d, retriers)
	if all == 0 && bounded {
		unbounded(&d) // it may be no retry
		d.Lacks = append(d.Lacks, "total.missing")
	} else {
		m.times(&d, n)
	}
	m.repeated(&d, "Step Functions", "a state", statesRequest(n))
	var judged []string
	if _, low, high := forbear.Event.Range(); all > high && all > worst {
		judged = []string{"max_retries"}
		m.refuse(place, "R-2", &d, "max_retries", "its retriers add up to %d retries: want %d-%d", all, low, high)
	}
	m.add(d, judged...)
	return true
}

// statesRequest reads the request of a state that calls an HTTP endpoint or an API of API
// Gateway: in Parameters, or in Arguments where JSONata is the language.
func statesRequest(n *tree.Node) (sent request) {
	resource := n.Get("Resource").Text()
	if !strings.Contains(resource, ":states:::http:invoke") && !strings.Contains(resource, ":states:::apigateway:invoke") {
		return sent
	}
	given := n.Get("Parameters", "Arguments")
	sent.method = given.Get("Method")
	for _, h := range given.Get("Headers").Fields() {
		sent.keyed = sent.keyed || isKey(h.Key)
	}
	return sent
}

// statesCount reads how often a retrier retries.
func statesCount(retrier *tree.Node) (int, bool) {
	v := retrier.Get("MaxAttempts")
	if v == nil {
		return statesRetries, true
	}
	return count(v)
}

// waits judges how the retriers of a state wait. Full jitter is a setting here, and
// not the default.
func (m *machine) waits(d *policyfile.Dependency, retriers []*tree.Node) {
	plain := false
	var steps []time.Duration
	for _, v := range retriers {
		n, ok := statesCount(v)
		if ok && n == 0 {
			continue
		}
		if v.Get("JitterStrategy").Text() != "FULL" && !plain {
			plain = true
			m.refuse(v.At, "R-1", d, "backoff.jitter", "a retrier without JitterStrategy FULL waits equally long in all executions")
		}
		first, rate := statesWait, statesRate
		if t, ok := seconds(v.Get("IntervalSeconds")); ok {
			first = t
		}
		if f, ok := v.Get("BackoffRate").Number(); ok {
			rate = f
		}
		if rate <= 1 && n > 1 {
			m.refuse(v.At, "R-1", d, "backoff.base", "a retrier waits up to %v before every retry: with BackoffRate %v waits do not grow", first, rate)
		}
		most, _ := seconds(v.Get("MaxDelaySeconds"))
		next := grows(first, rate, most)
		const enough = 64
		for retry := range min(n, enough) {
			steps = append(steps, next(retry))
		}
	}
	wait(d, func(retry int) time.Duration {
		if len(steps) == 0 {
			return 0
		}
		return steps[min(retry, len(steps)-1)]
	})
}

// times reads what bounds a state with its retries. TimeoutSeconds of a state is that
// of one attempt; without it and one of the machine, an execution may last a year.
func (m *machine) times(d *policyfile.Dependency, n *tree.Node) {
	var all time.Duration // waits
	for _, step := range d.Policy.Backoff.Schedule {
		all = saturated(float64(all)+float64(step), 1)
	}
	each, own := seconds(n.Get("TimeoutSeconds"))
	if own = own && each > 0; own {
		d.SetPlace("per_attempt", n.Get("TimeoutSeconds").At)
		d.Policy.PerAttempt = each
	} else {
		defer unbounded(d)
		each, own = statesLongest(n.Get("Resource").Text())
	}
	total, whole := seconds(m.total)
	switch {
	case whole && total > 0:
		d.SetPlace("total", m.total.At)
		d.Policy.Total = total
	case m.total != nil || n.Has("TimeoutSecondsPath") || n.Has("TimeoutSeconds") && !own:
		d.Lacks = append(d.Lacks, "total.missing") // a value of the input, or of a template
	case own:
		d.SetPlace("total", n.At)
		if at, ok := d.Place("per_attempt"); ok {
			d.SetPlace("total", at)
		}
		d.Policy.Total = saturated(float64(each)*float64(d.Policy.Retries()+1)+float64(all), 1)
	case m.said:
		d.Lacks = append(d.Lacks, "total.missing")
	default:
		m.said = true // once a machine, whose setting it is
		m.refuse(placed(n.Get("Retry"), n.At), "R-3", d, "total.missing", "nothing bounds this state and its retries: set TimeoutSeconds of it or of the state machine")
	}
}

// statesLongest returns the longest that what a state calls may take by itself. A
// callback is waited for without an end, whatever it was that was called.
func statesLongest(resource string) (time.Duration, bool) {
	switch {
	case strings.HasSuffix(resource, ".waitForTaskToken"):
	case strings.Contains(resource, ":states:::lambda:invoke"), strings.Contains(resource, ":lambda:") && strings.Contains(resource, ":function:"):
		return lambdaTimeout, true
	case strings.HasSuffix(resource, ":states:::http:invoke"):
		return httpTimeout, true
	}
	return 0, false
}
