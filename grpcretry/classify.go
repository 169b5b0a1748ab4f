package grpcretry

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/errtype"
)

// Names of metadata that this package reads or writes.
const (
	// TrailerPushback is a server's own wait, in milliseconds (gRFC A6).
	TrailerPushback = grpcwire.Pushback
	// HeaderAttempts is the number of attempts before this one (gRFC A6).
	HeaderAttempts = grpcwire.Attempts
	// HeaderKey carries the idempotency key.
	HeaderKey = "idempotency-key"
)

// ParseCode returns the code with that name, as the gRPC specification spells
// it.
func ParseCode(name string) (c codes.Code, ok bool) {
	n, ok := grpccode.Parse(name)
	return codes.Code(n), ok
}

// CodeNames returns the names of all codes, by number.
func CodeNames() []string { return slices.Clone(grpccode.Names[:]) }

// Classify turns the outcome of one attempt into a failure. ctx is the caller's
// own context and trailer what the attempt came back with, or nil. A nil err is
// a failure of class Success. The policy's profile may class single codes
// otherwise, by their labels, such as "grpc_INTERNAL".
func Classify(ctx context.Context, err error, trailer metadata.MD) forbear.Failure {
	if err == nil {
		return forbear.Failure{Class: forbear.ClassSuccess}
	}
	_, bare := err.(interface{ GRPCStatus() *status.Status })
	bare = bare && !wraps(err)
	var f forbear.Failure
	known := false
	if !bare {
		if f, known = edge.ClassifyNet(err); known && f.Class == forbear.ClassCertificate {
			return f
		}
	}
	switch ctx.Err() {
	case nil:
	case context.DeadlineExceeded:
		return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.CallerDeadline, Err: err}
	default:
		return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.Canceled, Err: err}
	}
	if !bare {
		if e, ok := errors.AsType[*forbear.Error](err); ok {
			f = e.Failure()
			f.Err = err
			return f
		}
	}
	s, ok := status.FromError(err)
	switch {
	case !ok && known:
		return f
	case !ok: // not gRPC's own, for all that status.Code calls it UNKNOWN
		return forbear.Failure{Type: errtype.Unknown, Err: err}
	}
	key, _ := keyOf(ctx)
	f = grpcwire.Judge(uint32(s.Code()), detailsOf(s), trailer[TrailerPushback], key != "")
	f.Err = err
	return f
}

// wraps reports whether err may hold another error. gRPC's own do not, and are
// not searched for network errors.
func wraps(err error) bool {
	switch err.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		return true
	}
	return false
}

// detailsOf reads what the details of a status say of a retry.
func detailsOf(s *status.Status) (d grpcwire.Details) {
	if len(s.Details()) == 0 { // most have none, and Proto copies all there is
		return d
	}
	for _, detail := range s.Proto().GetDetails() {
		d.Read(detail.GetTypeUrl(), detail.GetValue())
	}
	return d
}
