package policyfile

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear"
)

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
