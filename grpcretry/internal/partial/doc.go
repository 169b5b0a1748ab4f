// Package partial holds tests alone: those of the root module's internal/testkit/partial,
// over gRPC.
package partial
