package grpcretry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/lattice"
	"github.com/forbear-go/forbear/reason"
)

// failing answers the first n attempts with err.
func failing(n int, err error) func(context.Context, int) error {
	return func(_ context.Context, attempt int) error {
		if attempt <= n {
			return err
		}
		return nil
	}
}

var unavailable = status.Error(codes.Unavailable, "no")

func reasonOf(err error) forbear.Reason {
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		return e.Reason
	}
	return reason.None
}

func TestUnaryIsRetried(t *testing.T) {
	s := &service{check: failing(2, unavailable)}
	conn := dialed(t, s, quick())
	if err := check(t, t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if got, want := s.values(grpcretry.HeaderAttempts), []string{"", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", grpcretry.HeaderAttempts, got, want)
	}
}

func TestUnaryStops(t *testing.T) {
	for _, tc := range []struct {
		name     string
		err      error
		policy   func(*forbear.Policy)
		attempts int
		reason   forbear.Reason
	}{
		{"retries used", unavailable, nil, 4, reason.Exhausted},
		{"a final code", status.Error(codes.InvalidArgument, ""), nil, 1, reason.Terminal},
		{"INTERNAL under the standard", status.Error(codes.Internal, ""), nil, 1, reason.Terminal},
		{"INTERNAL under lattice", status.Error(codes.Internal, ""), func(p *forbear.Policy) {
			lattice, _ := forbear.Profile("lattice")
			p.Classify = lattice.Classify
		}, 4, reason.Exhausted},
		{"UNAUTHENTICATED without a source of tokens", status.Error(codes.Unauthenticated, ""), nil, 1, reason.Unauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, p := &service{check: failing(9, tc.err)}, quick()
			if tc.policy != nil {
				tc.policy(&p)
			}
			err := check(t, t.Context(), dialed(t, s, p))
			if s.attempts() != tc.attempts || reasonOf(err) != tc.reason {
				t.Errorf("%d attempts, %v; want %d, %v", s.attempts(), err, tc.attempts, tc.reason)
			}
			if got := status.Code(err); got != status.Code(tc.err) {
				t.Errorf("code %v, want %v", got, status.Code(tc.err))
			}
		})
	}
}

func TestKeysAndIdempotence(t *testing.T) {
	const key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"
	for _, tc := range []struct {
		name     string
		ctx      func(context.Context) context.Context
		keys     forbear.KeyMode
		opts     []grpcretry.Option
		attempts int
		keyed    bool
	}{
		{name: "nothing said", attempts: 1},
		{name: "listed", opts: []grpcretry.Option{grpcretry.WithIdempotent(checkMethod)}, attempts: 3},
		{name: "its service listed", opts: []grpcretry.Option{grpcretry.WithIdempotent("/grpc.health.v1.Health/*")}, attempts: 3},
		{name: "all listed", opts: []grpcretry.Option{grpcretry.WithIdempotent("*")}, attempts: 3},
		{name: "another listed", opts: []grpcretry.Option{grpcretry.WithIdempotent(watchMethod)}, attempts: 1},
		{name: "the caller's key", ctx: func(ctx context.Context) context.Context { return grpcretry.WithKey(ctx, key) }, attempts: 3, keyed: true},
		{name: "a key of 65 characters", ctx: func(ctx context.Context) context.Context {
			return grpcretry.WithKey(ctx, strings.Repeat("k", 65))
		}, attempts: 1, keyed: true},
		{name: "a key of 64 characters in quotes", ctx: func(ctx context.Context) context.Context {
			return grpcretry.WithKey(ctx, `"`+strings.Repeat("k", 64)+`"`)
		}, attempts: 3, keyed: true},
		{name: "forbear's key", keys: forbear.KeyGenerate, attempts: 3, keyed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, p, ctx := &service{check: failing(2, unavailable)}, quick(), t.Context()
			p.Keys = tc.keys
			if tc.ctx != nil {
				ctx = tc.ctx(ctx)
			}
			r := retryer(t, p)
			conn := start(t, s, tcp(t), nil, append(grpcretry.DialOptions(r, tc.opts...), plain())...)
			err := check(t, ctx, conn)
			if s.attempts() != tc.attempts || (err == nil) != (tc.attempts == 3) {
				t.Errorf("%d attempts, %v; want %d", s.attempts(), err, tc.attempts)
			}
			keys := s.values(grpcretry.HeaderKey)
			if same := slices.Compact(keys); len(same) != 1 || (same[0] != "") != tc.keyed {
				t.Errorf("keys %q: want one for all, there %v", same, tc.keyed)
			}
		})
	}
}

// TestServersWait holds pushback and RetryInfo to what they say, over the wire.
func TestServersWait(t *testing.T) {
	// The longest backoff does not fit into a call, whose deadline is later than this.
	const soon, longest = 15 * time.Second, 0.999
	info, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(80 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	never, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(-time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		trailer  []string
		err      error
		base     time.Duration
		attempts int
		least    time.Duration
		most     time.Duration
		reason   forbear.Reason
	}{
		{"80 ms", []string{"80"}, unavailable, time.Millisecond, 2, 80 * time.Millisecond, soon, 0},
		{"at once, in place of the backoff", []string{"0"}, unavailable, 20 * time.Second, 2, 0, soon, 0},
		{"never", []string{"-1"}, unavailable, time.Millisecond, 1, 0, soon, reason.ServerStop},
		{"two values", []string{"1", "1"}, unavailable, time.Millisecond, 1, 0, soon, reason.ServerStop},
		{"longer than the call", []string{"60000"}, unavailable, time.Millisecond, 1, 0, soon, reason.HintTooLong},
		{"RetryInfo", nil, info.Err(), time.Millisecond, 2, 80 * time.Millisecond, soon, 0},
		{"RetryInfo below zero", nil, never.Err(), time.Millisecond, 1, 0, soon, reason.ServerStop},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &service{check: func(ctx context.Context, n int) error {
				if n > 1 {
					return nil
				}
				for _, v := range tc.trailer {
					_ = grpc.SetTrailer(ctx, metadata.Pairs(grpcretry.TrailerPushback, v))
				}
				return tc.err
			}}
			p := quick()
			p.Backoff = forbear.Backoff{Base: tc.base, Cap: 20 * time.Second}
			r := retryer(t, p, forbear.WithRand(func() float64 { return longest }))
			conn := start(t, s, tcp(t), nil, append(grpcretry.DialOptions(r, grpcretry.WithIdempotent(checkMethod)), plain())...)
			began := time.Now()
			err := check(t, t.Context(), conn)
			if took := time.Since(began); took < tc.least || took > tc.most {
				t.Errorf("took %v, want %v to %v", took, tc.least, tc.most)
			}
			if s.attempts() != tc.attempts || reasonOf(err) != tc.reason {
				t.Errorf("%d attempts, %v; want %d, %v", s.attempts(), err, tc.attempts, tc.reason)
			}
		})
	}
}

// TestHeadersCommit holds gRFC A6 where it can be seen: a trailer that follows
// headers.
func TestHeadersCommit(t *testing.T) {
	s := &service{check: func(ctx context.Context, _ int) error {
		_ = grpc.SendHeader(ctx, metadata.Pairs("x-began", "1"))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-ended", "1"))
		return unavailable
	}}
	if err := check(t, t.Context(), dialed(t, s, quick())); s.attempts() != 1 || reasonOf(err) != reason.NotReplayable {
		t.Errorf("%d attempts, %v; want 1, not replayable", s.attempts(), err)
	}
}

func TestPerCallOverride(t *testing.T) {
	s := &service{check: failing(9, unavailable)}
	conn := dialed(t, s, quick())
	if err := check(t, forbear.WithMaxRetries(t.Context(), 0), conn); reasonOf(err) != reason.Disabled || s.attempts() != 1 {
		t.Errorf("%d attempts, %v; want 1", s.attempts(), err)
	}
	before := s.attempts()
	if err := check(t, forbear.WithMaxRetries(t.Context(), 5), conn); err == nil || s.attempts()-before != 6 {
		t.Errorf("%d attempts, %v; want 6", s.attempts()-before, err)
	}
}

func TestCallerAndAttemptTimeouts(t *testing.T) {
	hang := func(ctx context.Context, n int) error {
		if n > 1 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	t.Run("the attempt's own is retried", func(t *testing.T) {
		p := quick()
		p.PerAttempt = 2 * time.Second // for the second, too
		s := &service{check: hang}
		if err := check(t, t.Context(), dialed(t, s, p)); err != nil || s.attempts() != 2 {
			t.Errorf("%d attempts, %v; want 2", s.attempts(), err)
		}
	})
	t.Run("the caller's is not", func(t *testing.T) {
		s := &service{check: hang}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := check(t, ctx, dialed(t, s, quick()))
		if s.attempts() != 1 || status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != reason.Deadline {
			t.Errorf("%d attempts, %v; want 1", s.attempts(), err)
		}
	})
	t.Run("canceled during the wait", func(t *testing.T) {
		p := quick()
		p.Backoff = forbear.Backoff{Base: 20 * time.Second, Cap: 20 * time.Second}
		s := &service{check: failing(9, unavailable)}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		err := check(t, ctx, dialed(t, s, p))
		if status.Code(err) != codes.Canceled || reasonOf(err) != reason.Canceled || s.attempts() > 2 {
			t.Errorf("%d attempts, %v (%v); want canceled", s.attempts(), err, status.Code(err))
		}
	})
}

// TestGRPCThrottle uses gRPC's own kind of budget: ten tokens, of which five
// may go.
func TestGRPCThrottle(t *testing.T) {
	s := &service{check: failing(1000, unavailable)}
	r := retryer(t, quick(), forbear.WithBudget(budget.NewGRPC(10, 0.1)))
	conn := start(t, s, tcp(t), nil, append(grpcretry.DialOptions(r, grpcretry.WithIdempotent(checkMethod)), plain())...)
	var last error
	for range 5 {
		last = check(t, t.Context(), conn)
	}
	// The first call's four failures leave six tokens; the next one leaves five,
	// which is not more than half: from there on every call is tried once.
	if got := s.attempts(); got != 8 || reasonOf(last) != reason.Budget {
		t.Errorf("%d attempts, last %v; want 8 and the budget", got, last)
	}
}

func TestWarningWhenGRPCRetriesBelow(t *testing.T) {
	const own = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":2,"initialBackoff":"0.001s","maxBackoff":"0.002s",
		"backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	r := retryer(t, quick())
	for _, tc := range []struct {
		name     string
		warnings int
		attempts int
		dial     func(grpcretry.Option) []grpc.DialOption
	}{
		{"interceptor alone", 1, 8, func(o grpcretry.Option) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithUnaryInterceptor(grpcretry.UnaryClientInterceptor(r, o, grpcretry.WithIdempotent(checkMethod)))}
		}},
		{"switched off by hand", 0, 4, func(o grpcretry.Option) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(
				grpcretry.UnaryClientInterceptor(r, o, grpcretry.WithIdempotent(checkMethod), grpcretry.WithRetryDisabled()))}
		}},
		{"DialOptions", 0, 4, func(o grpcretry.Option) []grpc.DialOption {
			return grpcretry.DialOptions(r, o, grpcretry.WithIdempotent(checkMethod))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			s := &service{check: failing(1000, unavailable)}
			dial := tc.dial(grpcretry.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			conn := start(t, s, tcp(t), nil, append(dial, plain(), grpc.WithDefaultServiceConfig(own))...)
			_ = check(t, t.Context(), conn)
			attempts := s.attempts()
			_ = check(t, t.Context(), conn)
			if n := strings.Count(log.String(), "level=WARN"); n != tc.warnings {
				t.Errorf("%d warnings, want %d:\n%s", n, tc.warnings, &log)
			}
			// The warning is right: the layers multiply where it appears.
			if tc.warnings == 0 && attempts != tc.attempts || tc.warnings > 0 && attempts <= 4 {
				t.Errorf("%d attempts on the wire, want %d", attempts, tc.attempts)
			}
		})
	}
}

func TestTokenRefresh(t *testing.T) {
	newSource := func(fetches *atomic.Int64, fail bool) *credential.Cache {
		return credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
			n := fetches.Add(1)
			if fail && n > 1 {
				return credential.Token{}, errors.New("token endpoint down")
			}
			return credential.Token{Value: "Bearer t" + string('0'+rune(n)), Expires: time.Now().Add(time.Hour)}, nil
		}))
	}
	refusingFirst := func(ctx context.Context, _ int) error {
		md, _ := metadata.FromIncomingContext(ctx)
		if md.Get("authorization")[0] == "Bearer t1" {
			return status.Error(codes.Unauthenticated, "")
		}
		return nil
	}
	t.Run("once", func(t *testing.T) {
		var fetches atomic.Int64
		s := &service{check: refusingFirst}
		conn := dialed(t, s, quick(), grpcretry.WithInsecureCredentials(newSource(&fetches, false)))
		if err := check(t, t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if got := s.values("authorization"); !slices.Equal(got, []string{"Bearer t1", "Bearer t2"}) || fetches.Load() != 2 {
			t.Errorf("tokens %q, %d fetches", got, fetches.Load())
		}
	})
	t.Run("not twice", func(t *testing.T) {
		var fetches atomic.Int64
		s := &service{check: failing(9, status.Error(codes.Unauthenticated, ""))}
		conn := dialed(t, s, quick(), grpcretry.WithInsecureCredentials(newSource(&fetches, false)))
		err := check(t, t.Context(), conn)
		if s.attempts() != 2 || reasonOf(err) != reason.Unauthorized || status.Code(err) != codes.Unauthenticated {
			t.Errorf("%d attempts, %v; want 2", s.attempts(), err)
		}
	})
	t.Run("with a budget that allows no retry", func(t *testing.T) {
		var fetches atomic.Int64
		s, p := &service{check: refusingFirst}, quick()
		p.Strict = true // a fifth of one call is none
		conn := dialed(t, s, p, grpcretry.WithInsecureCredentials(newSource(&fetches, false)))
		if err := check(t, t.Context(), conn); err != nil || s.attempts() != 2 {
			t.Errorf("%d attempts, %v; want a second one with the fresh token", s.attempts(), err)
		}
	})
	t.Run("none to be had", func(t *testing.T) {
		var fetches atomic.Int64
		s := &service{check: refusingFirst}
		conn := dialed(t, s, quick(), grpcretry.WithInsecureCredentials(newSource(&fetches, true)))
		err := check(t, t.Context(), conn)
		if s.attempts() != 1 || reasonOf(err) != reason.RefreshFailed || strings.Contains(err.Error(), "t1") {
			t.Errorf("%d attempts on the wire, %v; want 1 and refresh_failed", s.attempts(), err)
		}
	})
	t.Run("by client credentials, many calls at once", func(t *testing.T) {
		var fetches atomic.Int64
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("grant_type") != "client_credentials" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			time.Sleep(20 * time.Millisecond) // so that the calls meet at the fetch
			fmt.Fprintf(w, `{"access_token":"t%d","expires_in":3600,"token_type":"Bearer"}`, fetches.Add(1))
		}))
		defer endpoint.Close()
		s := &service{check: refusingFirst}
		source := credential.New(lattice.ClientCredentials(endpoint.URL, "id", "secret"))
		conn := dialed(t, s, quick(), grpcretry.WithInsecureCredentials(source))
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if err := check(t, t.Context(), conn); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		// One token for all, refused for all, and one to replace it.
		if n := fetches.Load(); n != 2 || s.attempts() > 40 {
			t.Errorf("%d fetches, %d attempts; want 2 and at most 40", n, s.attempts())
		}
	})
}

// TestBreakerSeesServerFaults: INTERNAL is not retried, but it speaks against
// the dependency; NOT_FOUND does not.
func TestBreakerSeesServerFaults(t *testing.T) {
	for code, want := range map[codes.Code]breaker.State{codes.Internal: breaker.Open, codes.NotFound: breaker.Closed} {
		p := quick()
		p.Breaker = breaker.Policy{}
		r := retryer(t, p)
		s := &service{check: failing(1000, status.Error(code, ""))}
		conn := start(t, s, tcp(t), nil, append(grpcretry.DialOptions(r, grpcretry.WithIdempotent(checkMethod)), plain())...)
		for range 25 {
			_ = check(t, t.Context(), conn)
		}
		if got := r.Breaker().State(); got != want {
			t.Errorf("after 25 times %v the breaker is %v, want %v", code, got, want)
		}
	}
}

// TestRetryerByMethod gives a method a policy of its own.
func TestRetryerByMethod(t *testing.T) {
	once := quick()
	once.MaxRetries = 1
	r := retryer(t, once)
	s := &service{check: failing(9, unavailable)}
	conn := dialed(t, s, quick(), grpcretry.WithRetryer(func(method string) *forbear.Retryer {
		if method == checkMethod {
			return r
		}
		return nil
	}))
	if err := check(t, t.Context(), conn); err == nil || s.attempts() != 2 {
		t.Errorf("%d attempts, %v; want 2", s.attempts(), err)
	}
}
