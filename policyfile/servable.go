package policyfile

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear"
)

// Servable returns what keeps forbear serve from serving f, besides the faults
// that [Parse] finds, as an [*Error], or nil. delivers says that the API of the
// deliveries shares the gateway's address: what flags and the environment have to
// do with that, the file does not know.
//
// Serve refuses what this finds, and so does check.
func (f *File) Servable(delivers bool) error {
	var e Error
	// Routes that are all faulty are not missing.
	if _, written := f.places["gateway.routes"]; len(f.Gateway.Routes) == 0 && !written {
		e.Faults = append(e.Faults, &Fault{Position: f.Place("gateway"), Field: "gateway.routes", Message: "it has no gateway.routes, so there is nothing to serve: add routes, as forbear init writes them"})
	}
	for _, r := range f.Gateway.Routes {
		if !delivers || r.Host != "" || !DeliveryPrefix(r.Prefix) { // on a host of its own the API gives way
			continue
		}
		// Whichever of the two gave way, its callers would get 404s that the file
		// does not explain.
		e.Faults = append(e.Faults, &Fault{
			Position: r.At, Dependency: r.Dependency, Field: "prefix",
			Message: "the route " + r.Prefix + " is where the delivery API is: move the API with --api, or turn it off with --no-delivery",
		})
	}
	if len(e.Faults) == 0 {
		return nil
	}
	return &e
}

// HasGateway reports whether the file has the section gateway: one without it is
// for services that call their dependencies themselves.
func (f *File) HasGateway() bool {
	_, written := f.places["gateway"]
	return written || len(f.Gateway.Routes) > 0
}

// DeliveryPrefix reports whether a route of that prefix is where forbear serve has
// the API of its deliveries, which would hide it: /v1 and what is below it.
func DeliveryPrefix(prefix string) bool {
	return prefix == "/v1" || strings.HasPrefix(prefix, "/v1/")
}

// AsksForDeliveries returns what in the file asks forbear serve to deliver
// webhooks, in words, or "". Routes with idempotency keys do: their records and
// the deliveries are in one database.
func (f *File) AsksForDeliveries() string {
	if slices.ContainsFunc(f.All(), func(d *Dependency) bool { return d.Policy.Kind == forbear.Webhook }) {
		return "webhooks in the policy file"
	}
	if slices.ContainsFunc(f.Gateway.Routes, func(r Route) bool { return r.Idempotency.On }) {
		return "idempotency keys in the policy file"
	}
	return ""
}
