// Package interop has no code but its tests: what policyfile/export writes for gRPC,
// Envoy and Istio is read by their own types, strictly.
package interop
