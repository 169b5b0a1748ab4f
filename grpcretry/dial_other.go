//go:build !linux

package grpcretry

import "syscall"

// boundUnacknowledged does nothing: gRPC bounds it on Linux alone.
func boundUnacknowledged(string, string, syscall.RawConn) error { return nil }
