package grpcretry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/forbear-go/forbear/idempotency"
)

// IdempotencyOptions say how [UnaryServerIdempotency] works. Methods and
// Principal are required.
type IdempotencyOptions struct {
	// Methods are the full names of the methods that are done once per key,
	// such as "/ledger.Ledger/Pay"; "/ledger.Ledger/*" stands for all methods of
	// a service. All others pass untouched.
	Methods []string
	// Principal returns whose call it is: the authenticated caller or tenant,
	// never the value of a credential, which changes when it is refreshed. An
	// error, or an empty name, gets UNAUTHENTICATED.
	Principal func(ctx context.Context) (string, error)
	// Disposition overrides how to treat a call that ended with a code. Nil means
	// [DefaultDisposition]. The handler's own idempotency.MarkFinal, MarkUndone or
	// MarkUnknown comes before it.
	Disposition func(codes.Code) idempotency.Disposition
	// Fingerprint overrides what makes two calls of a method the same. Nil
	// means all bytes of the request, marshaled deterministically. While two
	// versions of a .proto are deployed side by side these may differ for one
	// request: a fingerprint of chosen fields does not.
	Fingerprint func(method string, req proto.Message) string
	// Options are those of package idempotency: retention, lease, waits, the
	// transaction mode and so on. Its Scope, Disposition, Fingerprint, KeepHeaders,
	// ReplayHeader and Stream belong to HTTP and must be unset.
	Options idempotency.Options
}

// HeaderReplayed marks a response that comes from the store, in the headers.
const HeaderReplayed = "idempotent-replayed"

// UnaryServerIdempotency returns an interceptor that does calls of the chosen
// methods once per idempotency key, which it expects in the metadata under
// [HeaderKey]. It is idempotency.Handler with another wire: records, waits,
// leases and promises are the same, and both may share a store.
//
//	OK, and errors that are final    kept; duplicates get them, with HeaderReplayed
//	errors that may go away, panics  the key is released: the next attempt runs
//	DEADLINE_EXCEEDED, CANCELLED     held: the work may have been done
//
// A call that is not let in ends with INVALID_ARGUMENT (no key, a bad one, or
// one of another request), UNAUTHENTICATED, ABORTED with google.rpc.RetryInfo
// (another attempt is still running), FAILED_PRECONDITION (outcome unknown, or
// not replayable) or UNAVAILABLE with RetryInfo (the store is down; nothing
// runs unprotected); a google.rpc.ErrorInfo of domain [ErrorDomain] names the
// reason. The handler's context outlives the caller's: it has no deadline but
// the options' MaxRun, and the response is stored before it goes out.
//
// The headers and trailers that the handler sets with grpc.SetHeader, SendHeader and
// SetTrailer go out with the response, not before, and are stored with it, up to 8 KiB
// in all: of more, duplicates get nothing. Not stored are credentials, names that begin
// with "grpc-" or "forbear-", and what belongs to one exchange, such as the ids of
// requests and traces. The handler cannot choose a compressor (grpc.SetSendCompressor).
//
// Streams are not done once: register [StreamServerIdempotency] too, so that none is
// taken for it.
//
// Interceptors that authenticate come before this one, and so do those that
// recover panics.
func UnaryServerIdempotency(store idempotency.Store, o IdempotencyOptions) (grpc.UnaryServerInterceptor, error) {
	s := &once{methods: methodSet{}, disposition: o.Disposition, fingerprint: o.Fingerprint}
	if s.disposition == nil {
		s.disposition = func(c codes.Code) idempotency.Disposition { return DefaultDisposition(c, o.Options.Rerun) }
	}
	if s.fingerprint == nil {
		s.fingerprint = fingerprint
	}
	for _, m := range o.Methods {
		if strings.Count(m, "/") != 2 || m[0] != '/' {
			return nil, fmt.Errorf("grpcretry: method %q: want /package.Service/Method", m)
		}
		if d := methodOf(m); d != nil && (d.IsStreamingClient() || d.IsStreamingServer()) {
			return nil, fmt.Errorf("grpcretry: method %q is a stream: idempotency keys are for unary calls, leave it out", m)
		}
		s.methods[m] = true
	}
	h := o.Options
	s.logger = cmp.Or(h.Logger, slog.Default())
	switch {
	case len(s.methods) == 0:
		return nil, errors.New("grpcretry: no methods: name those that take idempotency keys")
	case o.Principal == nil:
		return nil, errors.New("grpcretry: no principal: set the function that names the caller")
	case h.Scope != nil || h.Disposition != nil || h.Fingerprint != nil || h.KeepHeaders != nil || h.ReplayHeader != "" || h.Stream:
		return nil, errors.New("grpcretry: Scope, Disposition, Fingerprint, KeepHeaders, ReplayHeader and Stream apply to HTTP only: leave them unset")
	}
	h.KeepHeaders = []string{storedHeader, storedTrailer}
	h.Scope = func(r *http.Request) (string, error) { return o.Principal(r.Context()) }
	h.Fingerprint = func(r *http.Request, _ []byte) string { return callOf(r.Context()).print }
	var err error
	if s.handler, err = idempotency.Handler(store, h, http.HandlerFunc(s.run)); err != nil {
		return nil, fmt.Errorf("grpcretry: %w", err)
	}
	return s.intercept, nil
}

// DefaultDisposition says how to treat a call that ended with a code. OK is kept,
// and so is what repeating does not change. What clients may retry, what
// another credential may change, and the server's own failures are released.
// DEADLINE_EXCEEDED and CANCELLED say nothing about the work, which may have
// been done: they are held, unless rerun says that it may be repeated.
func DefaultDisposition(c codes.Code, rerun bool) idempotency.Disposition {
	switch c {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return idempotency.Keep
	case codes.DeadlineExceeded, codes.Canceled:
		if !rerun {
			return idempotency.Hold
		}
	}
	return idempotency.Retry
}

// once does calls once. It is idempotency's HTTP middleware, to which a call is
// put as a request: its key is the header, its method the path.
type once struct {
	methods     methodSet
	disposition func(codes.Code) idempotency.Disposition
	fingerprint func(string, proto.Message) string
	logger      *slog.Logger
	handler     http.Handler
}

// call is what travels through the middleware in the request's context.
type call struct {
	req     any
	print   string
	handler grpc.UnaryHandler
	set     *settings // what the handler set beside its response; nil without a transport
	reply   any
	err     error
}

// callKey is where the context of the request has its call.
type callKey struct{}

// callOf returns the call that a request stands for. intercept put it there.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// intercept puts a call through the middleware as a request without a body: the
// fingerprint, which the body would be for, is made of the message. The reply of a
// handler that ran goes back as it is, not as it was stored.
func (s *once) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !s.methods.has(info.FullMethod) {
		return handler(ctx, req)
	}
	m, ok := req.(proto.Message)
	if !ok {
		return nil, status.Errorf(codes.Internal, "idempotency: requests of type %T cannot be compared: use protobuf messages", req)
	}
	patient, cancel := inTime(ctx)
	defer cancel()
	md, _ := metadata.FromIncomingContext(ctx)
	c := &call{req: req, handler: handler, print: s.fingerprint(info.FullMethod, m)}
	r := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: info.FullMethod}, Header: http.Header{idempotency.Header: md.Get(HeaderKey)},
	}).WithContext(context.WithValue(patient, callKey{}, c))
	var a response
	s.handler.ServeHTTP(&a, r)
	if a.header.Get(headerFresh) != "" {
		c.set.send()
		return c.reply, c.err
	}
	return a.stored(ctx, info.FullMethod)
}

// inTime returns ctx with an end somewhat before the caller's: a duplicate that waits for
// a run under way is then told so while the caller still listens. To a caller that has
// timed out the server looks as if it had failed. A run is not bound by it.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	due, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(due)
	return context.WithTimeout(ctx, left-min(left/5, time.Second))
}

// run is the handler behind the middleware.
func (s *once) run(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	c := callOf(ctx)
	served := ctx
	if stream := grpc.ServerTransportStreamFromContext(ctx); stream != nil {
		c.set = &settings{ServerTransportStream: stream}
		served = grpc.NewContextWithServerTransportStream(ctx, c.set)
	}
	c.reply, c.err = c.handler(served, c.req)
	a := encode(c.reply, c.err)
	if _, marked := idempotency.Marked(ctx); !marked {
		switch s.disposition(a.code) {
		case idempotency.Keep:
			idempotency.MarkFinal(ctx)
		case idempotency.Retry:
			idempotency.MarkUndone(ctx)
		case idempotency.Hold:
			idempotency.MarkUnknown(ctx)
		}
	}
	w.Header().Set(headerFresh, "true")
	if !c.set.store(w.Header()) {
		s.logger.LogAttrs(ctx, slog.LevelWarn, "idempotency: the metadata of a response is too large to store: duplicates get none",
			slog.String("operation", r.URL.Path))
	}
	if a.contentType != "" {
		w.Header().Set("Content-Type", a.contentType)
	}
	w.WriteHeader(httpStatus(a.code))
	_, _ = w.Write(a.body)
}

// fingerprint is that of all bytes.
func fingerprint(method string, req proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(req)
	if err != nil { // a string that is not UTF-8: it came over no wire
		b = fmt.Append(nil, err)
	}
	return idempotency.Digest("grpc1", method, string(b))
}

// response is what the middleware responds with: the handler's own, a stored
// one, or a problem of its own.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header, WriteHeader and Write implement [http.ResponseWriter].
func (a *response) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

func (a *response) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *response) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
