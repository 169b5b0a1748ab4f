package check

import (
	"cmp"
	"fmt"

	"github.com/forbear-go/forbear/policyfile"
)

const (
	// sharedBodies is what forbear serve has for the bodies of all requests where it knows
	// no limit of its memory, in bytes.
	sharedBodies = 4 * policyfile.MaxBodyLimit
	// shortBody is what each request may keep anyway.
	shortBody policyfile.Size = 64 << 10
	// envoyBody is what Envoy keeps without a setting.
	envoyBody policyfile.Size = 1 << 20
)

// bodies says what the long bodies of a route cost.
func (r *run) bodies(f *policyfile.File) {
	for _, route := range f.Gateway.Routes {
		d, ok := f.Dependency(route.Dependency)
		each := route.BodyLimit
		if route.MaxBody > 0 {
			each = min(each, route.MaxBody)
		}
		if !ok || d.Policy.Disabled || each <= shortBody {
			continue
		}
		where, most := route.Host+route.Prefix, int64(cmp.Or(route.MaxConcurrent, d.Policy.MaxConcurrent))
		if own := int64(d.Policy.MaxConcurrent); own > 0 {
			most = min(most, own)
		}
		cost := fmt.Sprintf("%s for the max_concurrent of %d", inBytes(each*policyfile.Size(most)), most)
		if fit := sharedBodies / int64(each); most == 0 || most > fit {
			cost = fmt.Sprintf("%d at once fill the %s for all routes (a quarter of GOMEMLIMIT, if set), and the next is sent once", fit, inBytes(sharedBodies))
		}
		r.add(bodiesInMemory.at(route.At, d.Name, "the route %s keeps up to %s of each request's body in memory for a retry: %s", where, inBytes(each), cost).keyed(where))
	}
}

// bodyLimit says what other software keeps of a body, if it is more than its default.
func (r *run) bodyLimit(s Source, d *policyfile.Dependency) {
	if d.Policy.Disabled || d.BodyLimit <= envoyBody {
		return
	}
	at, _ := d.Place("body_limit")
	r.add(bodiesInMemory.at(at, d.Name, "up to %s of each request's body to %s is kept in memory for a retry: 100 at once are %s", inBytes(d.BodyLimit), d.Name, inBytes(100*d.BodyLimit)).in(s, d.Route))
}

// inBytes writes a size as a policy file has it.
func inBytes(s policyfile.Size) string {
	text, _ := s.MarshalText() // never fails
	return string(text)
}
