package check

import "github.com/forbear-go/forbear/policyfile"

// ingress judges the routes that honor idempotency keys for their service.
// Each of its findings is a choice that the file may make, and that a
// reviewer has to see.
func (r *run) ingress(f *policyfile.File) {
	for _, route := range f.Gateway.Routes {
		in := route.Idempotency
		if !in.On {
			continue
		}
		where := route.Prefix + route.Host
		if in.Principal.Single {
			r.add("FC307", in.At, route.Dependency, "all callers of %s share their idempotency keys", where)
		}
		if in.Optional {
			r.add("FC308", in.At, route.Dependency, "POST and PATCH to %s pass without an idempotency key", where)
		}
		if in.Rerunnable {
			r.add("FC309", in.At, route.Dependency, "what may have happened behind %s is done again", where)
		}
	}
}
