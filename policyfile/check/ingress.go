package check

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// ingress judges the routes that honor idempotency keys for their service.
// Each of its findings is a choice that the file may make, and that a
// reviewer has to see.
func (r *run) ingress(f *policyfile.File) {
	for _, route := range f.Gateway.Routes {
		in := route.Idempotency
		if !in.On {
			continue
		}
		where := route.Host + route.Prefix
		if in.Principal.Single {
			r.add(ingressKeysShared.at(in.At, route.Dependency, "all callers of %s share their idempotency keys", where))
		}
		if header := cmp.Or(in.Principal.Header, policyfile.DefaultPrincipal); !in.Principal.Single && in.Principal.JWT == (policyfile.JWT{}) && !guarded(f) {
			r.add(principalFromTheWire.at(in.At, route.Dependency, "%s believes the header %s from any peer", where, header))
		}
		if in.Optional {
			r.add(ingressKeyOptional.at(in.At, route.Dependency, "POST and PATCH to %s pass without an idempotency key", where))
		}
		if in.Rerunnable {
			r.add(ingressRerunnable.at(in.At, route.Dependency, "operations behind %s whose outcome is unknown are repeated", where))
		}
	}
}

// keyed is a route with keys.
type keyed struct {
	*policyfile.Route
	file *policyfile.File
	url  string // of its dependency
}

// meets reports whether a key of k may be one of o, whose place is the same: in one file,
// where the methods alone tell the routes apart, or in those of two services, whose
// gateways may share a database. Files of one service are its environments.
func (k *keyed) meets(o *keyed) bool {
	return k.Idempotency.Principal == o.Idempotency.Principal && (k.file == o.file || k.file.Service != o.file.Service && k.url != o.url)
}

// keysMeet finds routes with keys that are one place, as the gateway names it.
func (r *run) keysMeet() {
	seen := map[string][]*keyed{} // by place and host, and by place alone for one of each file
	for _, s := range r.sources {
		for i := range s.File.Gateway.Routes {
			route := &s.File.Gateway.Routes[i]
			d, ok := s.File.Dependency(route.Dependency)
			if !ok || !route.Idempotency.On {
				continue
			}
			k := &keyed{route, s.File, d.URL}
			place := fmt.Sprintf("%s %q %q", d.Name, route.Prefix, route.Headers)
			at, any := place+" at "+route.Host, place+" at any"
			others := seen[at]
			if route.Host == "" {
				others = slices.Concat(others, seen[any])
			} else {
				others = slices.Concat(others, seen[place+" at "])
			}
			if j := slices.IndexFunc(others, func(o *keyed) bool { return (o.Host == route.Host || o.file != k.file) && k.meets(o) }); j >= 0 {
				r.meeting(k, others[j])
			}
			seen[at] = append(seen[at], k)
			if n := len(seen[any]); n == 0 || seen[any][n-1].file != k.file {
				seen[any] = append(seen[any], k)
			}
		}
	}
}

// meeting reports that keys of k may meet those of o.
func (r *run) meeting(k, o *keyed) {
	where := fmt.Sprintf("the one on line %d", o.At.Line)
	if o.file != k.file {
		where = fmt.Sprintf("%s of %s, if their gateways share a database", o.Host+o.Prefix, o.file.Service)
	}
	r.add(ingressKeysMeet.at(k.Idempotency.At, k.Dependency, "a key of the route %s is a key of %s too", k.Host+k.Prefix, where))
}

// guarded reports whether the file names the peers whose word about the caller
// counts. A prefix of all addresses names no one.
func guarded(f *policyfile.File) bool {
	all := func(p netip.Prefix) bool { return p.Bits() == 0 }
	return len(f.Gateway.TrustedProxies) > 0 && !slices.ContainsFunc(f.Gateway.TrustedProxies, all)
}

// servable finds what forbear serve would refuse, as far as the file tells. A file
// without a gateway is for services that are none.
func (r *run) servable(f *policyfile.File) {
	if !f.HasGateway() {
		return
	}
	faults, ok := errors.AsType[*policyfile.Error](f.Servable(true))
	if !ok {
		return
	}
	for _, fault := range faults.Faults {
		rule := gatewayWithoutRoutes
		if fault.Dependency != "" {
			rule = routeOfTheDeliveryAPI
		}
		found := rule.at(fault.Position, cmp.Or(fault.Dependency, f.Service), "%s", fault.Message)
		if rule == routeOfTheDeliveryAPI && f.AsksForDeliveries() == "" {
			found.Severity = report.Warning
		}
		r.add(found)
	}
}

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
			r.add(routeGivesUpFirst.at(route.At, d.Name, "the route %s ends a call after %v, but one attempt on %s may take %v", where, route.Timeout, d.Name, attempt).keyed(where))
		}
	}
}
