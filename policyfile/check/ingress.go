package check

import (
	"cmp"
	"errors"
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
		where := route.Prefix + route.Host
		if in.Principal.Single {
			r.add("FC307", in.At, route.Dependency, "all callers of %s share their idempotency keys", where)
		}
		if header := cmp.Or(in.Principal.Header, policyfile.DefaultPrincipal); !in.Principal.Single && in.Principal.JWT == (policyfile.JWT{}) && !guarded(f) {
			r.add("FC311", in.At, route.Dependency, "%s believes the header %s from every peer", where, header)
		}
		if in.Optional {
			r.add("FC308", in.At, route.Dependency, "POST and PATCH to %s pass without an idempotency key", where)
		}
		if in.Rerunnable {
			r.add("FC309", in.At, route.Dependency, "what may have happened behind %s is done again", where)
		}
	}
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
		id := "FC801"
		if fault.Dependency != "" {
			id = "FC802"
		}
		found := r.add(id, fault.Position, cmp.Or(fault.Dependency, f.Service), "%s", fault.Message)
		if id == "FC802" && f.AsksForDeliveries() == "" {
			found.Severity = report.Warning
		}
	}
}
