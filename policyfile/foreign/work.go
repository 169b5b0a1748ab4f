package foreign

import (
	"strings"
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
	r.cannot(d, "R-6", "", "%s runs %s again from its start: the file does not say whether it may run twice", product, what)
	r.unbudgeted(d, product)
}

// request is the HTTP request that a step sends, as far as its file says it. The zero value
// is that of a step that sends none, or of one whose method is not known.
type request struct {
	method *tree.Node
	keyed  bool // an Idempotency-Key is among its headers
}

// isKey reports whether a header is the key that makes a write safe to send again.
func isKey(header string) bool {
	return strings.EqualFold(strings.TrimSuffix(header, ".$"), "Idempotency-Key")
}

// repeated is again for a step that may send a request: of one whose method the file says
// it is known whether that may be done twice.
func (r *reader) repeated(d *policyfile.Dependency, product, what string, sent request) {
	method := strings.ToUpper(sent.method.Text())
	switch {
	case method == "POST" || method == "PATCH":
		if !sent.keyed {
			r.refuse(sent.method.At, "R-6", d, "methods", "%s is sent again without the header Idempotency-Key", method)
		}
	case !idempotent(method):
		r.again(d, product, what)
		return
	}
	r.unbudgeted(d, product)
}

// unbudgeted records that neither a Retry-After nor a budget holds a product back.
func (r *reader) unbudgeted(d *policyfile.Dependency, product string) {
	r.cannot(d, "R-5", "", "no setting of %s makes it honor Retry-After", product)
	r.cannot(d, "R-7", "budget", "%s has no retry budget: all failures run again", product)
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
		r.refuse(at, "R-2", &d, "max_retries", "%d retries are outside %d-%d, the range for batch items", n, low, high).Value = d.Value("max_retries")
	}
	r.add(d, append(judged, "max_retries")...)
}

// unbounded is for where nothing bounds one attempt: it may take as long as the call.
func unbounded(d *policyfile.Dependency) { d.Lacks = append(d.Lacks, "per_attempt") }
