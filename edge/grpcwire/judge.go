package grpcwire

import (
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/internal/errtype"
)

// aborted is ABORTED, by which a server says that it is still at work on a key.
const aborted = 10

// Judge returns the failure that a status is, without its error: by the code, its
// details and the values of grpc-retry-pushback-ms. keyed says that the call carries an
// idempotency key: only then can the server be at work on it.
func Judge(code uint32, d Details, pushback []string, keyed bool) forbear.Failure {
	f := forbear.Failure{Class: grpccode.Class(code)}
	if f.Class == forbear.ClassSuccess {
		return f
	}
	f.Type = grpccode.Label(code)
	f.Hint = hint.Stricter(d.Hint, PushbackHint(pushback))
	if code == aborted && d.InProgress && keyed {
		f.Type, f.Hint.SameKey = errtype.InProgress, true
	}
	return f
}
