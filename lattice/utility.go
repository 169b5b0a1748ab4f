package lattice

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
)

// Extract reads the HTTP status and the headers off an error of the SDK; ok is
// false for an error without them. For the Go SDK:
//
//	func(err error) (int, http.Header, bool) {
//		var e *core.APIError
//		if !errors.As(err, &e) {
//			return 0, nil, false
//		}
//		return e.StatusCode, e.Header, true
//	}
type Extract func(err error) (status int, header http.Header, ok bool)

// Utility retries calls above an SDK, for those who cannot put a [Client] under
// it. Switch the SDK's own retries off: option.WithMaxAttempts(1) in Go,
// max_retries 0 elsewhere. The utility counts what goes out on the wire and
// warns once when one attempt is several requests. It is safe for concurrent
// use; make one with [NewUtility].
type Utility struct {
	r       *forbear.Retryer
	extract Extract
	logger  *slog.Logger

	requests, attempts atomic.Int64
	warned             atomic.Bool
}

// NewUtility returns a utility that retries as r decides. A nil extract looks
// through the chain of an error for the exported fields StatusCode and Header,
// which the SDK's errors have. A nil logger means slog.Default().
func NewUtility(r *forbear.Retryer, extract Extract, logger *slog.Logger) *Utility {
	if extract == nil {
		extract = Fields
	}
	if logger == nil {
		logger = slog.Default()
	}
	return &Utility{r: r, extract: extract, logger: logger}
}

// Do calls op until it succeeds, fails permanently, or the policy says stop. op
// makes one call of the SDK under the context that it is given; the call must
// be safe to repeat. The error is a [*forbear.Error] that unwraps to the
// SDK's own.
func (u *Utility) Do(ctx context.Context, op func(ctx context.Context) error) error {
	call, err := edge.Begin(ctx, u.r)
	if err != nil {
		return err
	}
	for {
		err := u.attempt(call.Context(ctx), op)
		if err == nil {
			call.Succeed(ctx)
			return nil
		}
		f := u.Classify(ctx, err)
		call.State().ExhaustedBelow = edge.ExhaustedBelow(err)
		d := call.Fail(ctx, f)
		if !d.Retry {
			return call.Err(d, f)
		}
		if err := call.Wait(ctx, d, f); err != nil {
			return err
		}
	}
}

// attempt runs op once and counts the requests that it writes.
func (u *Utility) attempt(ctx context.Context, op func(context.Context) error) error {
	var wire atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { wire.Add(1) },
	})
	err := op(ctx)
	u.count(ctx, wire.Load())
	return err
}

// count records an attempt and warns when the layer below retries too.
func (u *Utility) count(ctx context.Context, wire int64) {
	u.requests.Add(wire)
	u.attempts.Add(1)
	if wire > 1 && !u.warned.Swap(true) {
		u.logger.LogAttrs(ctx, slog.LevelWarn,
			"lattice: the SDK retries too, so attempts multiply: turn its retries off (WithMaxAttempts(1), max_retries 0)",
			slog.String("dependency", u.r.Dependency()), slog.Int64("amplification", wire))
	}
}

// Sends returns how many attempts were made so far and how many requests they
// put on the wire. Twice as many requests as attempts mean an amplification of
// two.
func (u *Utility) Sends() (attempts, requests int64) { return u.attempts.Load(), u.requests.Load() }

// Classify turns an error of an SDK call into a failure.
func (u *Utility) Classify(ctx context.Context, err error) forbear.Failure {
	req := (&http.Request{Method: http.MethodGet}).WithContext(ctx)
	if f, ok := edge.ClassifyNet(err); ok && f.Class == forbear.ClassCertificate || ctx.Err() != nil {
		return httpretry.Classify(req, nil, err)
	}
	status, header, ok := u.extract(err)
	if !ok {
		return httpretry.Classify(req, nil, err)
	}
	if header == nil {
		header = http.Header{}
	}
	f := httpretry.Classify(req, &http.Response{StatusCode: status, Header: header, Body: http.NoBody}, nil)
	if f.Class == forbear.ClassSuccess { // an error with the status of a success
		f = forbear.Failure{Type: errtype.Unknown}
	}
	f.Err = err
	return f
}

// Fields is the [Extract] for errors that are structs, or pointers to structs,
// with the exported fields StatusCode (int) and Header (http.Header), anywhere
// in the chain.
func Fields(err error) (status int, header http.Header, ok bool) {
	for depth := 0; err != nil && depth < 32; depth++ {
		v := reflect.ValueOf(err)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return 0, nil, false // asking it for more would panic
			}
			v = v.Elem()
		}
		if v.Kind() == reflect.Struct {
			if s, found := field(v, "StatusCode"); found && s.Kind() == reflect.Int {
				if h, found := field(v, "Header"); found {
					header, _ = h.Interface().(http.Header)
				}
				return int(s.Int()), header, true
			}
		}
		err = errors.Unwrap(err)
	}
	return 0, nil, false
}

// field returns an exported field, its embedded structs' own included.
func field(v reflect.Value, name string) (reflect.Value, bool) {
	f, ok := v.Type().FieldByName(name)
	if !ok || !f.IsExported() {
		return reflect.Value{}, false
	}
	value, err := v.FieldByIndexErr(f.Index) // an embedded pointer may be nil
	return value, err == nil && value.CanInterface()
}
