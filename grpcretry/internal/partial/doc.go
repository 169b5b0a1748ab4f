// Package partial holds tests alone: those of the root module's internal/partial,
// over gRPC.
package partial
