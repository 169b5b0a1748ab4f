package grpcretry

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// stream is the interceptor for streams. Only a stream of responses to one
// request can be sent again: what a client streams is gone once it is sent, and
// is not kept here.
func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if desc.ClientStreams || !desc.ServerStreams {
		return streamer(ctx, desc, cc, method, opts...)
	}
	r, policy := c.pick(method)
	if policy.Keys == forbear.KeyGenerate {
		ctx = c.generateKey(ctx, method)
	}
	call, err := edge.Begin(ctx, r)
	if err != nil {
		return nil, refusal(ctx, err)
	}
	s := &serverStream{
		c: c, ctx: ctx, method: method, call: call, timeout: policy.AttemptTimeout(),
		open: func(ctx context.Context) (grpc.ClientStream, error) { return streamer(ctx, desc, cc, method, opts...) },
	}
	if err := s.start(); err != nil {
		if err = s.recover(err, nil); err != nil {
			return nil, err
		}
	}
	// A caller that goes away without reading to the end must not keep its
	// place in the bulkhead.
	s.stop = context.AfterFunc(ctx, s.abandon)
	return s, nil
}

// serverStream is a stream of responses that begins again for as long as none has
// arrived. Like every grpc.ClientStream it may be sent on by one goroutine and
// received from by one other.
type serverStream struct {
	c       *client
	ctx     context.Context
	method  string
	open    func(context.Context) (grpc.ClientStream, error)
	timeout time.Duration
	stop    func() bool

	mu      sync.Mutex
	call    edge.Call
	ended   bool // the call is over, whatever the stream still brings
	current grpc.ClientStream
	cancel  context.CancelCauseFunc
	limit   time.Duration // of the attempt
	timer   *time.Timer
	request any
	sent    bool // the request
	closed  bool // CloseSend
	own     bool // the caller's context has metadata
	used    *slot
}

// start opens the stream of the attempt under way and sends what the caller has
// sent so far. The attempt's timeout covers the time until the first response.
func (s *serverStream) start() error {
	ctx, number := s.ctx, s.call.Attempt()
	if number > 1 {
		ctx = retryContext(ctx, &s.call, number, s.own)
	}
	if s.c.tokens != nil {
		s.used = &slot{}
		ctx = context.WithValue(ctx, slotKey{}, s.used)
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.limit = s.call.Limit(s.timeout)
	if !s.c.noTimeout {
		cancel := s.cancel
		s.timer = time.AfterFunc(s.limit, func() { cancel(errAttemptTimeout) })
	}
	if d, ok := s.ctx.Deadline(); ok {
		s.limit = min(s.limit, hasty(time.Until(d), s.timeout))
	}
	cs, err := s.open(ctx)
	if err != nil {
		return s.timedOut(ctx, err)
	}
	s.current = cs
	if s.sent {
		if err := cs.SendMsg(s.request); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if s.closed {
		return cs.CloseSend()
	}
	return nil
}

// timedOut names the attempt's own timeout, which gRPC knows only as a canceled
// context.
func (s *serverStream) timedOut(ctx context.Context, err error) error {
	gone := s.c.conns.timedOut(ctx, s.limit)
	if errors.Is(context.Cause(ctx), errAttemptTimeout) && s.ctx.Err() == nil {
		return &attemptTimeout{err, gone}
	}
	return err
}

// recover decides about a failed attempt and makes the ones that follow, until
// one stands or the call is over. s.mu is held, over the waits too: SendMsg and
// CloseSend then meet the attempt that stands, and no other.
func (s *serverStream) recover(err error, cs grpc.ClientStream) error {
	for {
		s.own = s.c.facts(s.ctx, s.method, s.call.State())
		err = s.c.explain(err)
		var trailer metadata.MD
		if cs != nil {
			trailer = cs.Trailer()
			if headers, herr := cs.Header(); herr == nil && headers != nil {
				s.call.State().Unreplayable = true // gRFC A6: the headers are there
			}
		}
		s.finishAttempt()
		f := Classify(s.ctx, err, trailer)
		if t, ok := errors.AsType[*attemptTimeout](err); ok {
			f = silenced(forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout, Err: t}, t.gone)
		}
		s.call.State().ExhaustedBelow = exhaustedBelow(err, trailer)
		if errors.Is(err, credential.ErrRefreshFailed) && f.Class != forbear.ClassCanceled {
			s.ended = true
			return s.call.Abandon(s.ctx, f, reason.RefreshFailed)
		}
		d := s.call.Fail(s.ctx, f)
		if !d.Retry {
			s.ended = true
			return s.call.Err(d, f)
		}
		if d.Reason == reason.Refresh {
			s.c.tokens.source.Refused(s.used.token)
		}
		if err := s.call.Wait(s.ctx, d, f); err != nil {
			s.ended = true
			return refusal(s.ctx, err)
		}
		if err = s.start(); err == nil {
			return nil
		}
		cs = nil
	}
}

// finishAttempt releases what a failed attempt holds.
func (s *serverStream) finishAttempt() {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.cancel != nil {
		s.cancel(nil)
	}
}

// commit ends the call: a response has begun, or the stream is empty.
func (s *serverStream) commit() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.ended = true
	s.call.Succeed(s.ctx)
}

// abandon ends a call whose caller has gone before any response came. The failure
// is the caller's own, so nothing is retried and nothing is held against the
// server.
func (s *serverStream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	s.finishAttempt()
	s.c.conns.timedOut(s.ctx, s.limit)
	f := Classify(s.ctx, context.Cause(s.ctx), nil)
	s.call.Fail(s.ctx, f)
}

// RecvMsg implements [grpc.ClientStream].
func (s *serverStream) RecvMsg(m any) error {
	for {
		s.mu.Lock()
		cs, ended, timer := s.current, s.ended, s.timer
		s.mu.Unlock()
		err := cs.RecvMsg(m)
		if ended {
			s.over(err)
			return err
		}
		s.mu.Lock()
		switch {
		case s.ended: // abandoned meanwhile
		case err == nil || errors.Is(err, io.EOF):
			s.commit()
		default:
			if timer != nil {
				timer.Stop()
			}
			err = s.timedOut(cs.Context(), err)
			if err = s.recover(err, cs); err == nil {
				s.mu.Unlock()
				continue
			}
		}
		s.mu.Unlock()
		s.over(err)
		return err
	}
}

// over releases the stream once it has ended. An error, io.EOF included, is the
// end; before it the caller may go on reading.
func (s *serverStream) over(err error) {
	if err == nil {
		return
	}
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishAttempt()
}

// SendMsg implements [grpc.ClientStream]. The message is kept until the first
// response has arrived and must not be changed.
func (s *serverStream) SendMsg(m any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request, s.sent = m, true
	return s.current.SendMsg(m)
}

// CloseSend implements [grpc.ClientStream].
func (s *serverStream) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.current.CloseSend()
}

// Header implements [grpc.ClientStream]. A caller that has seen the headers of
// a response has begun to read it: there is no other attempt after that.
func (s *serverStream) Header() (metadata.MD, error) {
	s.mu.Lock()
	cs := s.current
	s.mu.Unlock()
	md, err := cs.Header()
	if err == nil && md != nil {
		s.mu.Lock()
		s.call.State().Unreplayable = true
		s.mu.Unlock()
	}
	return md, err
}

// Trailer implements [grpc.ClientStream].
func (s *serverStream) Trailer() metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil
	}
	return s.current.Trailer()
}

// Context implements [grpc.ClientStream].
func (s *serverStream) Context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return s.ctx
	}
	return s.current.Context()
}

// attemptTimeout is an attempt that brought no response in its time.
type attemptTimeout struct {
	error
	gone bool // a connection had gone silent
}

// Unwrap gives what gRPC said; Timeout makes it a timeout to those who ask.
func (e *attemptTimeout) Unwrap() error { return e.error }
func (e *attemptTimeout) Timeout() bool { return true }
