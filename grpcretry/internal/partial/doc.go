// Package partial holds tests alone: those of the root module's edge/partial,
// over gRPC.
package partial
