package policyfile

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// layer is a policy together with where each of its fields was written: that of
// a profile, or that of a dependency on top of its profile.
type layer struct {
	policy forbear.Policy
	places map[string]place // by field, as in "backoff.cap"
	start  Position
}

// place is where a field was written, and in whose policy.
type place struct {
	Position
	owner string
}

// policyReader reads the policy fields of one mapping on top of another layer.
type policyReader struct {
	*decoder
	*layer
	owner string
	here  map[string]bool // the fields that this mapping sets itself
}

// layer reads the policy fields of n, which may extend a built-in profile, on
// top of base.
func (d *decoder) layer(n *yaml.Node, owner string, base layer) layer {
	r := d.reader(n, owner, base)
	if name, ok := d.extends(n, owner); ok {
		if p, err := forbear.Profile(name.Value); err != nil {
			d.Fault(name, "%v", err)
		} else {
			p.Kind = base.policy.Kind // no profile is of a kind
			r.policy = p
		}
	}
	return r.read(n, fields{"url": skip})
}

// reader prepares the reading of n's policy fields on top of base. Maps are
// copied, so that two dependencies of one profile do not share them.
func (d *decoder) reader(n *yaml.Node, owner string, base layer) *policyReader {
	l := layer{policy: base.policy, places: maps.Clone(base.places), start: d.At(n)}
	l.policy.Classify = maps.Clone(l.policy.Classify)
	l.policy.WaitHeaders = maps.Clone(l.policy.WaitHeaders)
	if l.places == nil {
		l.places = map[string]place{}
	}
	return &policyReader{decoder: d, layer: &l, owner: owner, here: map[string]bool{}}
}

// read reads the policy fields of n, and those of the caller.
func (r *policyReader) read(n *yaml.Node, more fields) layer {
	r.Keys(n, r.owner, r.fields(more))
	r.reconcile()
	return *r.layer
}

// skip is for keys that are read elsewhere.
func skip(*yaml.Node) {}

// sets records that a field was written here, and returns its reader.
func (r *policyReader) sets(field string, read func(v *yaml.Node)) func(*yaml.Node) {
	return func(v *yaml.Node) {
		r.here[field] = true
		r.places[field] = place{r.At(v), r.owner}
		read(v)
	}
}

// placed is sets for many fields, whose places begin with prefix. Each has its own:
// a fault of an inherited one names the profile that set it.
func (r *policyReader) placed(prefix string, known fields) fields {
	for field, read := range known {
		known[field] = r.sets(prefix+field, read)
	}
	return known
}

// section reads a section: the plain values of a struct, and what more may stand
// there. What the values may be is checked by the policy itself.
func (r *policyReader) section(n *yaml.Node, name string, into any, more fields) {
	known := r.values(name+".", into)
	maps.Copy(known, more)
	r.Keys(n, name, r.placed(name+".", known))
}

// reconcile lets what this mapping says win over what it inherited, where the two
// cannot stand side by side.
func (r *policyReader) reconcile() {
	p := &r.policy
	if r.here["disabled"] && p.Disabled {
		r.forget("max_retries", func() { p.MaxRetries = 0 })
		r.forget("max_attempts", func() { p.MaxAttempts = 0 })
	}
	if r.here["max_retries"] || r.here["max_attempts"] {
		r.forget("disabled", func() { p.Disabled = false })
	}
	if r.here["budget.ratio"] || r.here["budget.of"] {
		r.forget("budget.max_multiplier", func() { p.Budget.MaxMultiplier = 0 })
	}
	if r.here["budget.max_multiplier"] {
		r.forget("budget.ratio", func() { p.Budget.Ratio = 0 })
		r.forget("budget.of", func() { p.Budget.Of = budget.OfInitial })
	}
	// strict takes the softening away that a profile has brought, and
	// contradicts what stands beside it in the same mapping.
	if r.here["strict"] && p.Strict {
		r.forget("budget.min_retries", func() { p.Budget.MinRetries = 0 })
		r.forget("budget.round_up", func() { p.Budget.RoundUp = false })
	}
}

// forget drops a field, unless this very mapping sets it: then both stand,
// and judge reports the contradiction.
func (r *policyReader) forget(field string, drop func()) {
	if !r.here[field] {
		drop()
	}
}

// judge holds a finished policy against the standard, and records each
// violation where the field was written: in a profile, perhaps, and not in
// the dependency.
func (d *decoder) judge(l layer, dependency string, waivers ...Waiver) {
	for _, v := range violation.Of(&l.policy) {
		note, waived := waiver(waivers, v.Rule, dependency, d.now)
		if waived && !d.inspect {
			continue
		}
		at := l.place(v.Field, dependency)
		if d.inspect {
			note, at.owner = "", dependency
		}
		if note != "" {
			at.owner = dependency // the waiver's, wherever the field was written
		}
		d.refuse(at.Position, v.Rule, dependency, v.Field, "%s: %s %s%s", at.owner, v.Field, v.Detail, note)
	}
}

// place returns where a field was written, or else its section, or else the
// whole.
func (l *layer) place(field, owner string) place {
	for {
		if at, ok := l.places[field]; ok {
			return at
		}
		cut := strings.LastIndexByte(field, '.')
		if cut < 0 {
			return place{l.start, owner}
		}
		field = field[:cut]
	}
}
