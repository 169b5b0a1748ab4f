// Package interop has no code but its tests: what policyfile/export writes for gRPC,
// Envoy and Istio is read by their own types, strictly, and what policyfile/foreign
// knows of products is held against theirs.
package interop
