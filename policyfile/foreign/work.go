package foreign

import (
	"math"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// Queues and workflows keep their attempts: a retry comes from a controller or a
// store, and no caller waits for it in memory. That is what kind event means, so
// that the waits and totals of R-3 for events hold for all of them. Where the work
// is a batch, its count is held against the narrower range of batch items.

// day is the longest total of R-3.
const day = 24 * time.Hour

// work starts a unit of a queue or a workflow. Its names hold a space, so that none is
// taken for the host of a service.
func work(name, route string, at policyfile.Position) policyfile.Dependency {
	d := policyfile.Dependency{Name: name, Route: route, At: at}
	d.Policy.Kind = forbear.Event
	return d
}

// again records what no file of a product can hold, where it does something again as
// a whole.
func (r *reader) again(d *policyfile.Dependency, product, what string) {
	r.cannot(d, "R-6", "", "%s runs %s again from its start: whether that may be done twice, the file does not say", product, what)
	r.unbudgeted(d, product)
}

// unbudgeted records that neither a Retry-After nor a budget holds a product back.
func (r *reader) unbudgeted(d *policyfile.Dependency, product string) {
	r.cannot(d, "R-5", "", "nothing in a file of %s makes it wait for as long as a Retry-After asks", product)
	r.cannot(d, "R-7", "budget", "%s has no retry budget: whatever fails is run again", product)
}

// limitless refuses retries without an end. The figures show the default of the kind,
// as a lower bound.
func (r *reader) limitless(at policyfile.Position, d *policyfile.Dependency, format string, args ...any) {
	d.AtLeast = true
	r.refuse(at, "R-2", d, "max_retries", format, args...)
}

// batch is add for batches.
func (r *reader) batch(d policyfile.Dependency, judged ...string) {
	_, low, high := forbear.Batch.Range()
	if n := d.Policy.MaxRetries; n > high {
		at, _ := d.Place("max_retries")
		r.refuse(at, "R-2", &d, "max_retries", "max_retries %d is outside %d-%d, the range of batch items", n, low, high)
		refused := r.result(d.At.File).Refused
		refused[len(refused)-1].Value = d.Value("max_retries")
	}
	r.add(d, append(judged, "max_retries")...)
}

// wait sets the waits of d before each retry, the first of which is number 0, and
// returns what they come to. The number of retries must be known by then.
func wait(d *policyfile.Dependency, before func(retry int) time.Duration) (all time.Duration) {
	const most = 64 // waits; those that follow are as long as the last one
	n := d.Policy.Retries()
	steps := make([]time.Duration, 1, most+1)
	b := &d.Policy.Backoff
	for retry := range min(n, most) {
		step := before(retry)
		steps = append(steps, step)
		all = saturated(float64(all)+float64(step), 1)
		b.Cap = max(b.Cap, step)
	}
	if len(steps) > 1 {
		b.Base, b.Schedule = steps[1], steps
	}
	return saturated(float64(all)+float64(max(n-most, 0))*float64(steps[len(steps)-1]), 1)
}

// grows returns waits that a factor makes longer, up to most; 0 sets no bound.
func grows(first time.Duration, factor float64, most time.Duration) func(int) time.Duration {
	return func(retry int) time.Duration {
		ns := float64(first) * math.Pow(factor, float64(retry))
		if math.IsNaN(ns) {
			return first // YAML can write such a factor; and zero times an infinite one is none
		}
		step := saturated(ns, 1)
		if most > 0 {
			return min(step, most)
		}
		return step
	}
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

// number reads a count that the file may leave out. Of one that cannot be read, as a
// template's variable, the default is the least that is known.
func (r *reader) number(d *policyfile.Dependency, n *tree.Node, absent int, at policyfile.Position) (int, policyfile.Position) {
	if n = given(n); n == nil {
		return absent, at
	}
	v, ok := count(n)
	if !ok {
		r.open(n.At, d, "%s: %q is no number: how often it is retried is not known", d.Name, n.Text())
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
