package foreign

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// given returns n, or nil for a null: to protobuf, and so to Kubernetes, that is a field
// which is not there.
func given(n *tree.Node) *tree.Node {
	if n != nil && n.Kind == tree.Scalar && n.Value == "" {
		return nil
	}
	return n
}

// placed is where a node stands, or else another place.
func placed(n *tree.Node, otherwise policyfile.Position) policyfile.Position {
	if n == nil {
		return otherwise
	}
	return n.At
}

// duration reads a duration that the file may leave out: what into has then is the
// default. One that cannot be read, as a template's variable, is zero and a note, and what
// it would bound counts as unknown.
func (r *reader) duration(d *policyfile.Dependency, field string, n *tree.Node, into *time.Duration) {
	r.time(d, field, n, (*tree.Node).Span, into)
}

// time is duration in a notation of the product's own.
func (r *reader) time(d *policyfile.Dependency, field string, n *tree.Node, read func(*tree.Node) (time.Duration, bool), into *time.Duration) {
	if n = given(n); n == nil {
		return
	}
	d.SetPlace(field, n.At)
	ok := false
	if *into, ok = read(n); ok {
		return
	}
	*into = 0
	d.Lacks = append(d.Lacks, unread[field]...)
	r.unjudged(n.At, d.Name, "%s: %q is not a duration, so it was not judged", d.Name, n.Text())
}

// unread is what is not known to be bounded when a field cannot be read.
var unread = map[string][]string{
	"total": {"total.missing"}, "per_attempt": {"per_attempt"}, "budget.window": {"budget"}, "budget.interval": {"budget"},
}

// attempt reads the time-out of one attempt. Without one, or with one of zero, which
// switches it off, what is known before holds, or an attempt may take all of the call.
// The total must be known by then.
func (r *reader) attempt(d *policyfile.Dependency, n *tree.Node) {
	before := cmp.Or(d.Policy.PerAttempt, d.Policy.Total)
	if r.duration(d, "per_attempt", n, &d.Policy.PerAttempt); d.Policy.PerAttempt == 0 {
		d.Policy.PerAttempt = before
	}
}

// number reads a count that the file may leave out. Of one that cannot be read, as a
// template's variable, the default is the least that is known.
func (r *reader) number(d *policyfile.Dependency, n *tree.Node, absent int, at policyfile.Position) (int, policyfile.Position) {
	if n = given(n); n == nil {
		return absent, at
	}
	v, ok := count(n)
	if !ok {
		r.open(n.At, d, "%s: %q is not a number: how often it is retried is unknown", d.Name, n.Text())
		return absent, n.At
	}
	return v, n.At
}

// count reads a number of attempts or retries.
func count(n *tree.Node) (int, bool) {
	v, ok := n.Number()
	if !ok || !(v >= 0) {
		return 0, false
	}
	return int(min(v, math.MaxInt32)), true
}

// seconds reads a number of seconds. ok is false for what is no number, or none that
// makes sense.
func seconds(n *tree.Node) (time.Duration, bool) {
	v, ok := n.Number()
	if !ok || !(v >= 0) {
		return 0, false
	}
	return saturated(v, time.Second), true
}

// isoTime matches durations of ISO 8601 without dates, as Java writes them.
var isoTime = regexp.MustCompile(`(?i)^PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?$`)

// javaTime reads a duration as Spring does: a number of milliseconds, a number with a
// unit, or ISO 8601.
func javaTime(s string) (time.Duration, bool) {
	if ms, err := strconv.ParseUint(s, 10, 62); err == nil {
		return saturated(float64(ms), time.Millisecond), true
	}
	if m := isoTime.FindStringSubmatch(s); m != nil && len(s) > 2 {
		return sum(m[1:], time.Hour, time.Minute, time.Second), true
	}
	if m := javaUnit.FindStringSubmatch(s); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		return saturated(v, spanUnits[m[2]]), true
	}
	return 0, false
}

// spanUnits are those of durations, as the products write them.
var spanUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": day,
}

var javaUnit = regexp.MustCompile(`^(\d+)\s*(ns|us|ms|s|m|h|d)$`)

// sum adds up numbers of units; "" counts as none.
func sum(numbers []string, units ...time.Duration) time.Duration {
	total := 0.0
	for i, unit := range units {
		v, _ := strconv.ParseFloat(numbers[i], 64)
		total += v * float64(unit)
	}
	return saturated(total, 1)
}

// saturated multiplies without an overflow.
func saturated(v float64, unit time.Duration) time.Duration {
	return time.Duration(min(v*float64(unit), math.MaxInt64/2))
}
