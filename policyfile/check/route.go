package check

import "github.com/forbear-go/forbear/policyfile"

// routes compares the timeout of each route with an attempt on its dependency,
// whose own time ends with the headers. A route that ends first cuts off what the
// policy would have ended, and retried.
func (r *run) routes(f *policyfile.File) {
	for _, route := range f.Gateway.Routes {
		d, ok := f.Dependency(route.Dependency)
		if !ok || route.Timeout == 0 {
			continue
		}
		if attempt := d.Policy.AttemptTimeout(); route.Timeout < attempt {
			where := route.Host + route.Prefix
			r.add(routeGivesUpFirst.at(route.At, d.Name, "the route %s ends a call after %v, while one attempt on %s may take %v", where, route.Timeout, d.Name, attempt).keyed(where))
		}
	}
}
