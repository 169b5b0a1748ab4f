package grpcretry

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// capture asks gRPC for the trailer of one call. It is pooled, because every
// call needs one and few have a trailer to show.
type capture struct {
	trailer metadata.MD
	option  grpc.CallOption // fills trailer
	opts    []grpc.CallOption
}

// captures pools them. The option is made once for each: it points at the trailer
// of its own capture.
var captures = sync.Pool{New: func() any {
	c := &capture{}
	c.option = grpc.Trailer(&c.trailer)
	return c
}}

// with returns the caller's options and the capture's own.
func (c *capture) with(opts []grpc.CallOption) []grpc.CallOption {
	c.opts = append(append(c.opts[:0], opts...), c.option)
	return c.opts
}

// free gives the capture back without the caller's options, which it would keep
// alive.
func (c *capture) free() {
	clear(c.opts)
	c.trailer = nil
	captures.Put(c)
}

// unaryCall is one unary call: what all its attempts share.
type unaryCall struct {
	c       *client
	r       *forbear.Retryer
	method  string
	req     any
	reply   any
	cc      *grpc.ClientConn
	invoker grpc.UnaryInvoker
	opts    []grpc.CallOption
	timeout time.Duration
	own     bool  // the caller's context has metadata
	gone    bool  // a connection had gone silent under the latest attempt
	used    *slot // the token of the latest attempt; nil without tokens
}

// unary is the interceptor. The way of a success is kept short: what the decision
// must know of the call is looked up after a failure only.
func (c *client) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	noteSend(ctx, cc, method, req)
	r, policy := c.pick(method)
	if !c.warned.Load() {
		c.watch(cc, method)
	}
	if policy.Keys == forbear.KeyGenerate {
		ctx = c.generateKey(ctx, method)
	}
	call, err := edge.Begin(ctx, r)
	if err != nil {
		return refusal(ctx, err)
	}
	x := unaryCall{
		c: c, r: r, method: method, req: req, reply: reply, cc: cc, invoker: invoker, opts: opts,
		timeout: policy.AttemptTimeout(),
	}
	if c.noPushback {
		err = x.attempt(ctx, &call, opts)
	} else {
		capture := captures.Get().(*capture)
		defer capture.free()
		x.opts = capture.with(opts)
		err = x.attempt(ctx, &call, x.opts)
		if err != nil {
			return x.retry(ctx, &call, capture, err)
		}
	}
	if err != nil {
		return x.retry(ctx, &call, nil, err)
	}
	call.Succeed(ctx)
	return nil
}

// pick returns the Retryer for a method and its policy, with defaults. That of the
// connection is read once; a chosen one is asked each time.
func (c *client) pick(method string) (*forbear.Retryer, *forbear.Policy) {
	if c.choose != nil {
		if r := c.choose(method); r != nil {
			p := r.Policy()
			return r, &p
		}
	}
	return c.retryer, &c.policy
}

// retry is everything after a failed first attempt.
func (x *unaryCall) retry(ctx context.Context, call *edge.Call, got *capture, err error) error {
	x.own = x.c.facts(ctx, x.method, call.State())
	for {
		var trailer metadata.MD
		if got != nil {
			trailer = got.trailer
		}
		err = x.c.explain(err)
		f := silenced(Classify(ctx, err, trailer), x.gone)
		call.State().ExhaustedBelow = exhaustedBelow(err, trailer)
		call.State().Unreplayable = committed(trailer)
		if errors.Is(err, credential.ErrRefreshFailed) && f.Class != forbear.ClassCanceled {
			return call.Abandon(ctx, f, reason.RefreshFailed)
		}
		d := call.Fail(ctx, f)
		if !d.Retry {
			return call.Err(d, f)
		}
		if d.Reason == reason.Refresh {
			x.c.tokens.source.Refused(x.used.token)
		}
		if err := call.Wait(ctx, d, f); err != nil {
			return refusal(ctx, err)
		}
		if got != nil {
			got.trailer = nil
		}
		if err = x.attempt(ctx, call, x.opts); err == nil {
			call.Succeed(ctx)
			return nil
		}
	}
}

// committed reports whether a trailer shows that the headers of a response came
// before it: gRPC then counts the call as committed (gRFC A6). A trailer that
// came alone holds the content type; an empty one says nothing.
func committed(trailer metadata.MD) bool {
	return len(trailer) > 0 && len(trailer["content-type"]) == 0
}

// attempt makes one attempt. The first runs under the caller's own context,
// untouched, when that ends soon enough.
func (x *unaryCall) attempt(ctx context.Context, call *edge.Call, opts []grpc.CallOption) error {
	if number := call.Attempt(); number > 1 {
		ctx = retryContext(ctx, call, number, x.own)
	}
	if x.c.tokens != nil {
		x.used = &slot{}
		ctx = context.WithValue(ctx, slotKey{}, x.used)
	}
	x.gone = false
	limit, own := x.limit(ctx, call)
	if !own {
		err := x.invoker(ctx, x.method, x.req, x.reply, x.cc, opts...)
		if err != nil {
			x.c.conns.timedOut(ctx, limit)
		}
		return err
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errAttemptTimeout)
	defer cancel()
	err := x.invoker(timed, x.method, x.req, x.reply, x.cc, opts...)
	if err != nil {
		x.gone = x.c.conns.timedOut(timed, limit)
	}
	return err
}

// errAttemptTimeout is the cause by which an attempt's own timeout is known from
// the caller's: gRPC reports both as DEADLINE_EXCEEDED.
var errAttemptTimeout = errors.New("attempt timed out")

// limit returns how long the attempt may take, and whether that is a timeout of its own:
// it has none where the caller's deadline is no later. The total is hard: no attempt
// outlives it.
func (x *unaryCall) limit(ctx context.Context, call *edge.Call) (limit time.Duration, own bool) {
	limit = call.Limit(x.timeout)
	if d, ok := ctx.Deadline(); ok {
		if left := time.Until(d); left <= limit {
			return hasty(left, x.timeout), false
		}
	}
	return limit, !x.c.noTimeout
}

// hasty returns what an attempt's time is taken for where its caller has less of it than
// the policy: a caller in a hurry does not show that a connection has gone silent.
func hasty(left, usual time.Duration) time.Duration { return max(left, min(usual, time.Second)) }

// retryContext marks a retry for those in this process and for the server.
// own says that the caller's context has metadata of its own.
func retryContext(ctx context.Context, call *edge.Call, number int, own bool) context.Context {
	inner := call.Context(ctx)
	if !own && number-2 < len(attemptsBefore) {
		return numbered{inner, attemptsBefore[number-2]}
	}
	return metadata.AppendToOutgoingContext(inner, HeaderAttempts, strconv.Itoa(number-1))
}

// numbered is the context of a retry whose caller has no metadata: it has that of
// outgoing, which is made once. With metadata.NewOutgoingContext each retry would
// allocate its own.
type numbered struct {
	context.Context
	outgoing context.Context
}

// Value implements [context.Context].
func (c numbered) Value(key any) any {
	if v := c.outgoing.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// attemptsBefore holds the metadata of retries that have no other, by their number.
// It is shared, and never changed: who asks for outgoing metadata gets a
// copy.
var attemptsBefore = func() (all [5]context.Context) {
	for i := range all {
		all[i] = metadata.NewOutgoingContext(context.Background(), metadata.Pairs(HeaderAttempts, strconv.Itoa(i+1)))
	}
	return all
}()

// refused is a call that was not let in, or ended during a wait, with the code
// that says so to gRPC.
type refused struct {
	error
	status *status.Status
}

func (e *refused) Unwrap() error              { return e.error }
func (e *refused) GRPCStatus() *status.Status { return e.status }

// refusal gives an error that never was a status a code.
func refusal(ctx context.Context, err error) error {
	code := codes.Unavailable
	switch {
	case ctx.Err() != nil:
		code = status.FromContextError(ctx.Err()).Code()
	case errors.Is(err, forbear.ErrBulkheadFull):
		code = codes.ResourceExhausted
	case errors.Is(err, forbear.ErrDeadline):
		code = codes.DeadlineExceeded
	default:
		if _, ok := status.FromError(err); ok {
			return err
		}
	}
	return &refused{err, status.New(code, err.Error())}
}
