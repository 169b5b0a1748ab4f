// Package grpccode holds the gRPC status codes by number, with their names,
// labels and classes, for those who cannot import gRPC and those who can.
package grpccode

import "github.com/forbear-go/forbear"

// Names are those of the gRPC specification, by number.
var Names = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// labels are made once: a label is read on every attempt, and the success path
// allocates nothing.
var labels = func() (l [len(Names)]string) {
	for i, name := range Names {
		l[i] = "grpc_" + name
	}
	return l
}()

// Label returns the error_type of a code: "grpc_UNAVAILABLE". A number outside the
// table has one shared label, so that a broken server cannot make series without
// bound.
func Label(code uint32) string {
	if code < uint32(len(labels)) {
		return labels[code]
	}
	return "grpc_invalid"
}

// Parse returns the code with that name. The comparison is exact. An unknown name
// gives 2, UNKNOWN, and false.
func Parse(name string) (code uint32, ok bool) {
	for i, known := range Names {
		if known == name {
			return uint32(i), true
		}
	}
	return 2, false
}

// Class is R-4's table. Codes that it does not list are terminal.
func Class(code uint32) forbear.Class {
	switch code {
	case 0: // OK
		return forbear.ClassSuccess
	case 14, 10: // UNAVAILABLE, ABORTED
		return forbear.ClassTransient
	case 4: // DEADLINE_EXCEEDED
		return forbear.ClassTimeout
	case 8: // RESOURCE_EXHAUSTED
		return forbear.ClassThrottled
	case 16: // UNAUTHENTICATED
		return forbear.ClassUnauthorized
	}
	return forbear.ClassTerminal
}
