// Package interop has no code but its tests: gRPC's own interop client and server, with
// a gateway between them.
package interop
