package forbear_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
)

// opError is what package net returns of a failed call to the system.
func opError(op, call string, errno syscall.Errno) error {
	return fmt.Errorf("ledger: %w", &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(call, errno)})
}

// TestDoKnowsWhatWasNotSent: what failed before anything was sent is retried
// without a classifier; what may have been sent needs the operation's word.
func TestDoKnowsWhatWasNotSent(t *testing.T) {
	resolve := fmt.Errorf("ledger: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "ledger.test", IsNotFound: true}})
	for _, tt := range []struct {
		name              string
		err               error
		plain, idempotent int // attempts
	}{
		{"connection refused", opError("dial", "connect", syscall.ECONNREFUSED), 4, 4},
		{"network unreachable", opError("dial", "connect", syscall.ENETUNREACH), 4, 4},
		{"host unreachable", opError("dial", "connect", syscall.EHOSTUNREACH), 4, 4},
		{"name not found", resolve, 2, 2},
		{"host unreachable after the connection", opError("read", "read", syscall.EHOSTUNREACH), 1, 4},
		{"reset", opError("read", "read", syscall.ECONNRESET), 1, 4},
		{"broken pipe", opError("write", "write", syscall.EPIPE), 1, 4},
		{"end of stream", io.ErrUnexpectedEOF, 1, 4},
		{"deadline of the operation's own", context.DeadlineExceeded, 1, 4},
		{"deadline of a socket", os.ErrDeadlineExceeded, 1, 4},
		{"no network failure", errFlaky, 1, 1},
		{"certificate", errors.Join(opError("dial", "connect", syscall.ECONNREFUSED), x509.UnknownAuthorityError{}), 1, 1},
		{"marked as final", forbear.Terminal(opError("dial", "connect", syscall.ECONNREFUSED)), 1, 1},
	} {
		for _, way := range []struct {
			name     string
			policy   forbear.Policy
			ctx      func(context.Context) context.Context
			attempts int
		}{
			{"plain", forbear.Policy{}, func(ctx context.Context) context.Context { return ctx }, tt.plain},
			{"by the context", forbear.Policy{}, forbear.Idempotent, tt.idempotent},
			{"by the policy", forbear.Policy{Idempotent: true}, func(ctx context.Context) context.Context { return ctx }, tt.idempotent},
		} {
			bubble(t, tt.name+", "+way.name, func(t *testing.T) {
				op, runs := failTimes(99, tt.err)
				err := quiet(t, way.policy, forbear.WithBudget(unlimited())).Do(way.ctx(t.Context()), op)
				if *runs != way.attempts || !errors.Is(err, tt.err) {
					t.Errorf("%d attempts, want %d (%v)", *runs, way.attempts, err)
				}
			})
		}
	}
}

// A classifier is asked before the network's failures are looked at.
func TestClassifierComesBeforeTheNetwork(t *testing.T) {
	final := func(err error) (forbear.Failure, bool) {
		return forbear.Failure{Class: forbear.ClassTerminal, Type: "ledger_closed"}, true
	}
	r := quiet(t, forbear.Policy{}, forbear.WithClassifier(final))
	op, runs := failTimes(99, opError("dial", "connect", syscall.ECONNREFUSED))
	if err := r.Do(t.Context(), op); *runs != 1 || !errors.Is(err, forbear.ErrTerminal) {
		t.Errorf("%d attempts, %v", *runs, err)
	}
}

// TestRefusedPort is the real thing: a server that is being restarted.
func TestRefusedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url, runs := "http://"+l.Addr().String(), 0
	l.Close()
	r := quiet(t, forbear.Policy{Backoff: forbear.Backoff{Base: 1, Cap: 1}}, forbear.WithBudget(unlimited()))
	err = r.Do(t.Context(), func(ctx context.Context) error {
		runs++
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	e, ok := errors.AsType[*forbear.Error](err)
	if !ok || runs != 4 || e.Type != "connection_refused" {
		t.Errorf("%d attempts, %v; want four", runs, err)
	}
}

// TestEndOfTheCaller: a cause of the caller's own hides neither what happened nor
// the standard library's error.
func TestEndOfTheCaller(t *testing.T) {
	gone := errors.New("the user went home")
	type way struct {
		name string
		run  func(ctx context.Context, end func()) error
	}
	r := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()), forbear.WithRand(half))
	ways := []way{
		{"before work is fetched", func(ctx context.Context, end func()) error {
			open := quiet(t, forbear.Policy{})
			open.Breaker().Force(breaker.Open, "jane", time.Now())
			time.AfterFunc(time.Millisecond, end)
			return edge.Ready(ctx, open)
		}},
		{"before the first attempt", func(ctx context.Context, end func()) error {
			end()
			return r.Do(ctx, failing)
		}},
		{"during an attempt", func(ctx context.Context, end func()) error {
			return r.Do(ctx, func(ctx context.Context) error {
				end()
				<-ctx.Done()
				return ctx.Err()
			})
		}},
		{"during an attempt that returns the cause", func(ctx context.Context, end func()) error {
			return r.Do(ctx, func(ctx context.Context) error {
				end()
				return context.Cause(ctx)
			})
		}},
		{"during an attempt that fails otherwise", func(ctx context.Context, end func()) error {
			return r.Do(ctx, func(context.Context) error {
				end()
				return errFlaky
			})
		}},
		{"during a wait", func(ctx context.Context, end func()) error {
			failed := false
			return r.Do(ctx, func(ctx context.Context) error {
				if failed {
					t.Error("a second attempt")
				}
				failed = true
				time.AfterFunc(time.Millisecond, end)
				return failing(ctx)
			})
		}},
	}
	for _, w := range ways {
		bubble(t, w.name+", canceled", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := w.run(ctx, func() { cancel(gone) })
			for _, want := range []error{context.Canceled, gone} {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want it to be %v", err, want)
				}
			}
		})
		if w.name == "during a wait" {
			continue // no wait is begun that the deadline would end
		}
		bubble(t, w.name+", out of time", func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, gone)
			defer cancel()
			err := w.run(ctx, func() { <-ctx.Done() })
			for _, want := range []error{context.DeadlineExceeded, gone} {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want it to be %v", err, want)
				}
			}
		})
	}
}
