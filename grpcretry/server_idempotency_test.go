package grpcretry_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// shop is a service whose Check is done once per key. What Check does is run;
// its reply tells how often.
type shop struct {
	healthpb.UnimplementedHealthServer
	runs atomic.Int64
	run  func(ctx context.Context, n int64) error
	conn *grpc.ClientConn
}

func (s *shop) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	n := s.runs.Add(1)
	if s.run != nil {
		if err := s.run(ctx, n); err != nil {
			return nil, err
		}
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(100 + n)}, nil
}

func (s *shop) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	s.runs.Add(1)
	return &healthpb.HealthListResponse{}, nil
}

// caller is the principal of the tests, from the metadata that an authenticating
// interceptor would have checked.
func caller(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get("x-caller"); len(v) == 1 {
		return v[0], nil
	}
	return "", errors.New("nobody")
}

func options() grpcretry.IdempotencyOptions {
	return grpcretry.IdempotencyOptions{
		Methods: []string{checkMethod}, Principal: caller,
		Options: idempotency.Options{Logger: slog.New(slog.DiscardHandler)},
	}
}

func open(t *testing.T, store idempotency.Store, run func(ctx context.Context, n int64) error, o grpcretry.IdempotencyOptions, dial ...grpc.DialOption) *shop {
	t.Helper()
	once, err := grpcretry.UnaryServerIdempotency(store, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{run: run}
	s.conn = start(t, s, tcp(t), []grpc.ServerOption{grpc.ChainUnaryInterceptor(recovering, once)}, append(dial, plain())...)
	return s
}

// recovering is what a server has that survives its handlers' panics.
func recovering(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Error(codes.Internal, "panic")
		}
	}()
	return handler(ctx, req)
}

// as returns a context for calls of that caller with these keys.
func as(ctx context.Context, who string, keys ...string) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-caller", who)
	for _, k := range keys {
		ctx = metadata.AppendToOutgoingContext(ctx, grpcretry.HeaderKey, k)
	}
	return ctx
}

// buy makes one call and returns the number that the reply tells.
func (s *shop) buy(ctx context.Context, what string) (n int, replayed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, testDeadline)
	defer cancel()
	var header metadata.MD
	reply, err := healthpb.NewHealthClient(s.conn).Check(ctx, &healthpb.HealthCheckRequest{Service: what}, grpc.Header(&header))
	return int(reply.GetStatus()) - 100, len(header.Get(grpcretry.HeaderReplayed)) == 1, err
}

func (s *shop) want(t *testing.T, ctx context.Context, what string, n int, replayed bool) {
	t.Helper()
	got, again, err := s.buy(ctx, what)
	if err != nil || got != n || again != replayed {
		t.Errorf("got run %d, replayed %v, %v; want run %d, replayed %v", got, again, err, n, replayed)
	}
}

// reason returns why a call was not let in, and the wait that it was told.
func refusalOf(err error) (name string, wait time.Duration) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == grpcretry.ErrorDomain {
				name = d.GetReason()
			}
		case *errdetails.RetryInfo:
			wait = d.GetRetryDelay().AsDuration()
		}
	}
	return name, wait
}

func refused(t *testing.T, err error, code codes.Code, why string, waits bool) {
	t.Helper()
	name, wait := refusalOf(err)
	if status.Code(err) != code || name != why || (wait > 0) != waits {
		t.Errorf("got %v (%q, wait %v), want %v (%q, a wait: %v)", err, name, wait, code, why, waits)
	}
}

func TestOncePerKey(t *testing.T) {
	s := open(t, &memstore.Idempotency{}, nil, options())
	s.want(t, as(t.Context(), "ann", "k1"), "book", 1, false)
	s.want(t, as(t.Context(), "ann", "k1"), "book", 1, true)
	s.want(t, as(t.Context(), "ann", `"k1"`), "book", 1, true) // the same key, quoted
	s.want(t, as(t.Context(), "ann", "k2"), "book", 2, false)
	s.want(t, as(t.Context(), "bob", "k1"), "book", 3, false)
	_, _, err := s.buy(as(t.Context(), "ann", "k1"), "another book")
	refused(t, err, codes.InvalidArgument, "KEY_REUSED", false)
	_, _, err = s.buy(as(t.Context(), "ann"), "book")
	refused(t, err, codes.InvalidArgument, "KEY_MISSING", false)
	for _, bad := range [][]string{{"k1", "k1"}, {""}, {"a b"}, {strings.Repeat("k", 65)}} {
		_, _, err = s.buy(as(t.Context(), "ann", bad...), "book")
		refused(t, err, codes.InvalidArgument, "KEY_INVALID", false)
	}
	_, _, err = s.buy(metadata.AppendToOutgoingContext(t.Context(), grpcretry.HeaderKey, "k1"), "book")
	refused(t, err, codes.Unauthenticated, "UNAUTHENTICATED", false)
	if n := s.runs.Load(); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
	for range 2 { // a method that nobody chose
		if _, err := healthpb.NewHealthClient(s.conn).List(t.Context(), &healthpb.HealthListRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.runs.Load(); n != 5 {
		t.Errorf("%d runs with two of another method, want 5", n)
	}
}

// A whole service may be chosen, and a key belongs to one method of it.
func TestKeyOfAnotherMethod(t *testing.T) {
	o := options()
	o.Methods = []string{"/grpc.health.v1.Health/*"}
	s := open(t, &memstore.Idempotency{}, nil, o)
	s.want(t, as(t.Context(), "ann", "k1"), "", 1, false)
	_, err := healthpb.NewHealthClient(s.conn).List(as(t.Context(), "ann", "k1"), &healthpb.HealthListRequest{})
	refused(t, err, codes.InvalidArgument, "KEY_REUSED", false)
}

// A fingerprint of chosen fields takes for one what differs elsewhere.
func TestFingerprintOfOnesOwn(t *testing.T) {
	o := options()
	o.Fingerprint = func(method string, req proto.Message) string {
		return idempotency.Digest(method, req.(*healthpb.HealthCheckRequest).GetService()[:4])
	}
	s := open(t, &memstore.Idempotency{}, nil, o)
	s.want(t, as(t.Context(), "ann", "k"), "book, new", 1, false)
	s.want(t, as(t.Context(), "ann", "k"), "book, used", 1, true)
	_, _, err := s.buy(as(t.Context(), "ann", "k"), "shoe")
	refused(t, err, codes.InvalidArgument, "KEY_REUSED", false)
}

func TestDispositionOfCodes(t *testing.T) {
	kept := []codes.Code{codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange}
	held := []codes.Code{codes.DeadlineExceeded, codes.Canceled}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			detailed, err := status.New(code, "no").WithDetails(durationpb.New(7))
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, &memstore.Idempotency{}, func(_ context.Context, n int64) error {
				if n == 1 {
					return detailed.Err()
				}
				return nil
			}, options())
			_, replayed, err := s.buy(as(t.Context(), "ann", "k"), "book")
			if !proto.Equal(status.Convert(err).Proto(), detailed.Proto()) || replayed {
				t.Errorf("the first: %v, replayed %v", err, replayed)
			}
			_, replayed, err = s.buy(as(t.Context(), "ann", "k"), "book")
			switch {
			case slices.Contains(kept, code):
				if !proto.Equal(status.Convert(err).Proto(), detailed.Proto()) || !replayed || s.runs.Load() != 1 {
					t.Errorf("the second: %v, replayed %v, %d runs; want the first's error", err, replayed, s.runs.Load())
				}
			case slices.Contains(held, code):
				refused(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
				if s.runs.Load() != 1 {
					t.Errorf("%d runs, want 1", s.runs.Load())
				}
			case err != nil || replayed || s.runs.Load() != 2:
				t.Errorf("the second: %v, replayed %v, %d runs; want another run", err, replayed, s.runs.Load())
			}
		})
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*grpcretry.IdempotencyOptions)
		run    func(ctx context.Context, n int64) error
		runs   int64
		code   codes.Code // of the duplicate
	}{
		{"a plain error is released", nil, func(_ context.Context, n int64) error { return []error{errors.New("x"), nil}[n-1] }, 2, codes.OK},
		{"a context's error is held", nil, func(context.Context, int64) error { return context.DeadlineExceeded }, 1, codes.FailedPrecondition},
		{"a panic is released", nil, func(_ context.Context, n int64) error {
			if n == 1 {
				panic("x")
			}
			return nil
		}, 2, codes.OK},
		{"marked final", nil, func(ctx context.Context, _ int64) error {
			idempotency.MarkFinal(ctx)
			return status.Error(codes.Unavailable, "past the point of no return")
		}, 1, codes.Unavailable},
		{"marked unknown", nil, func(ctx context.Context, _ int64) error {
			idempotency.MarkUnknown(ctx)
			return status.Error(codes.Unavailable, "cut off")
		}, 1, codes.FailedPrecondition},
		{"marked undone", nil, func(ctx context.Context, n int64) error {
			idempotency.MarkUndone(ctx)
			return []error{status.Error(codes.NotFound, "not yet"), nil}[n-1]
		}, 2, codes.OK},
		{"a deadline where it may be repeated", func(o *grpcretry.IdempotencyOptions) { o.Options.Rerun = true }, func(_ context.Context, n int64) error {
			return []error{context.DeadlineExceeded, nil}[n-1]
		}, 2, codes.OK},
		{"a disposition of one's own", func(o *grpcretry.IdempotencyOptions) {
			o.Disposition = func(codes.Code) idempotency.Disposition { return idempotency.Keep }
		}, func(context.Context, int64) error { return status.Error(codes.Aborted, "x") }, 1, codes.Aborted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options()
			if tc.change != nil {
				tc.change(&o)
			}
			s := open(t, &memstore.Idempotency{}, tc.run, o)
			_, _, _ = s.buy(as(t.Context(), "ann", "k"), "book")
			_, _, err := s.buy(as(t.Context(), "ann", "k"), "book")
			if status.Code(err) != tc.code || s.runs.Load() != tc.runs {
				t.Errorf("the duplicate: %v after %d runs, want %v after %d", err, s.runs.Load(), tc.code, tc.runs)
			}
		})
	}
}

func TestDuplicatesOfARunUnderWay(t *testing.T) {
	free := make(chan struct{})
	o := options()
	o.Options.Wait = 50 * time.Millisecond
	s := open(t, &memstore.Idempotency{}, func(context.Context, int64) error { <-free; return nil }, o)
	var wg sync.WaitGroup
	wg.Go(func() { s.want(t, as(t.Context(), "ann", "k"), "book", 1, false) })
	for s.runs.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	_, _, err := s.buy(as(t.Context(), "ann", "k"), "book")
	refused(t, err, codes.Aborted, "IN_PROGRESS", true)
	_, _, err = s.buy(as(t.Context(), "ann", "k"), "another")
	refused(t, err, codes.InvalidArgument, "KEY_REUSED", false)
	close(free)
	wg.Wait()
	s.want(t, as(t.Context(), "ann", "k"), "book", 1, true)
}

// A duplicate hears that the first still runs before its own time is over: a client
// whose attempts take as long as the server lets duplicates wait would else see nothing
// but timeouts.
func TestDuplicatesHearInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once, err := grpcretry.UnaryServerIdempotency(&memstore.Idempotency{}, options())
		if err != nil {
			t.Fatal(err)
		}
		call := func(timeout time.Duration) (any, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-caller", "ann", grpcretry.HeaderKey, "k"))
			handler := func(ctx context.Context, _ any) (any, error) {
				time.Sleep(time.Minute)
				return &healthpb.HealthCheckResponse{Status: serving}, ctx.Err()
			}
			return once(ctx, &healthpb.HealthCheckRequest{}, &grpc.UnaryServerInfo{FullMethod: checkMethod}, handler)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if reply, err := call(time.Second); err != nil { // its caller leaves, and the run goes on
				t.Errorf("the first: %v, %v", reply, err)
			}
		})
		synctest.Wait()
		for timeout, want := range map[time.Duration]time.Duration{5 * time.Second: 4 * time.Second, time.Second: 800 * time.Millisecond, time.Hour: 5 * time.Second} {
			began := time.Now()
			_, err := call(timeout)
			refused(t, err, codes.Aborted, "IN_PROGRESS", true)
			if took := time.Since(began); took != want {
				t.Errorf("with %v left: a response after %v, want %v", timeout, took, want)
			}
		}
		wg.Wait()
	})
}

// A duplicate that comes while the first runs waits for its answer.
func TestDuplicatesWait(t *testing.T) {
	s := open(t, &memstore.Idempotency{}, func(context.Context, int64) error { time.Sleep(100 * time.Millisecond); return nil }, options())
	var wg sync.WaitGroup
	var fresh atomic.Int64
	for range 10 {
		wg.Go(func() {
			n, replayed, err := s.buy(as(t.Context(), "ann", "k"), "book")
			if n != 1 || err != nil {
				t.Errorf("got run %d, %v", n, err)
			}
			if !replayed {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 || s.runs.Load() != 1 {
		t.Errorf("%d fresh answers of %d runs, want 1", fresh.Load(), s.runs.Load())
	}
}

// A caller that gives up and comes back finds the answer: the run went on, under
// a context that nobody canceled.
func TestCallerLeavesAndComesBack(t *testing.T) {
	left, ended := make(chan struct{}), make(chan error, 1)
	s := open(t, &memstore.Idempotency{}, func(ctx context.Context, _ int64) error {
		<-left
		time.Sleep(150 * time.Millisecond) // the server hears of it, and of the deadline
		ended <- ctx.Err()
		return nil
	}, options())
	ctx, cancel := context.WithTimeout(as(t.Context(), "ann", "k"), 2*time.Second) // so that the run begins
	defer cancel()
	if _, _, err := s.buy(ctx, "book"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the first: %v", err)
	}
	close(left)
	s.want(t, as(t.Context(), "ann", "k"), "book", 1, true)
	if err := <-ended; err != nil {
		t.Errorf("the run's context ended: %v", err)
	}
}

// cutting lets a handler break the connections of its server.
type cutting struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return conn, err
}

func (c *cutting) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// The connection breaks when the work is done and before its answer is out: the
// client tries again with the same key, and the work is done once.
func TestBrokenConnectionIsRetriedAndDoneOnce(t *testing.T) {
	once, err := grpcretry.UnaryServerIdempotency(&memstore.Idempotency{}, options())
	if err != nil {
		t.Fatal(err)
	}
	l := &cutting{Listener: tcp(t)}
	s := &shop{run: func(context.Context, int64) error { l.cut(); return nil }}
	p := quick()
	p.Keys = forbear.KeyGenerate
	s.conn = start(t, s, l, []grpc.ServerOption{grpc.ChainUnaryInterceptor(once)}, append(grpcretry.DialOptions(retryer(t, p)), plain())...)
	for want := 1; want <= 3; want++ {
		s.want(t, as(t.Context(), "ann"), "book", want, true)
	}
	if s.runs.Load() != 3 {
		t.Errorf("%d runs of three calls", s.runs.Load())
	}
}

// moody is a store that fails on demand.
type moody struct {
	idempotency.Store
	claims, ends atomic.Bool
}

func (m *moody) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if m.claims.Load() {
		return idempotency.Verdict{}, io.ErrUnexpectedEOF
	}
	return m.Store.Claim(ctx, c)
}

func (m *moody) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, d time.Duration) error {
	if m.ends.Load() {
		return io.ErrUnexpectedEOF
	}
	return m.Store.Complete(ctx, t, a, d)
}

func TestStoreDown(t *testing.T) {
	store := &moody{Store: &memstore.Idempotency{}}
	o := options()
	o.Options.Wait = -1
	s := open(t, store, nil, o)
	store.claims.Store(true)
	_, _, err := s.buy(as(t.Context(), "ann", "k"), "book")
	refused(t, err, codes.Unavailable, "STORE_UNAVAILABLE", true)
	if s.runs.Load() != 0 {
		t.Error("it ran unprotected")
	}
	store.claims.Store(false)
	store.ends.Store(true)
	s.want(t, as(t.Context(), "ann", "k"), "book", 1, false) // the true response
	s.want(t, as(t.Context(), "ann", "k"), "book", 1, true)  // which the process knows
	if s.runs.Load() != 1 {
		t.Errorf("%d runs, want 1", s.runs.Load())
	}
}

func TestLargeReplyIsNotReplayable(t *testing.T) {
	o := options()
	o.Options.MaxResponse = 1
	s := open(t, &memstore.Idempotency{}, nil, o)
	s.want(t, as(t.Context(), "ann", "k"), "book", 1, false)
	_, _, err := s.buy(as(t.Context(), "ann", "k"), "book")
	refused(t, err, codes.FailedPrecondition, "NOT_REPLAYABLE", false)
}

// What an operator says of a key whose outcome is unknown is what duplicates
// get.
func TestSettledKeys(t *testing.T) {
	for want, answer := range map[codes.Code]*idempotency.Response{
		codes.OK:                 {Status: 200},
		codes.NotFound:           {Status: 404},
		codes.InvalidArgument:    {Status: 400},
		codes.AlreadyExists:      {Status: 409},
		codes.FailedPrecondition: {Status: 422},
	} {
		store := &memstore.Idempotency{}
		s := open(t, store, func(context.Context, int64) error { return context.Canceled }, options())
		_, _, _ = s.buy(as(t.Context(), "ann", "k"), "book")
		id := idempotency.ID{Scope: "ann", Key: idempotency.Digest("k")}
		if err := store.Resolve(t.Context(), id, idempotency.Resolution{Response: answer}); err != nil {
			t.Fatal(err)
		}
		if _, replayed, err := s.buy(as(t.Context(), "ann", "k"), "book"); status.Code(err) != want || !replayed || s.runs.Load() != 1 {
			t.Errorf("settled with %d: %v, replayed %v, %d runs; want %v", answer.Status, err, replayed, s.runs.Load(), want)
		}
	}
}

// With the message as the body of its settlement, a duplicate gets the reply.
func TestSettledKeysHaveAReply(t *testing.T) {
	reply, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: 107})
	if err != nil {
		t.Fatal(err)
	}
	settled := &idempotency.Response{
		Status: 200, Header: http.Header{"Content-Type": {"application/x-protobuf; messagetype=grpc.health.v1.HealthCheckResponse"}}, Body: reply,
	}
	if err := settled.Check(); err != nil {
		t.Fatal(err)
	}
	store := &memstore.Idempotency{}
	s := open(t, store, func(context.Context, int64) error { return context.Canceled }, options())
	_, _, _ = s.buy(as(t.Context(), "ann", "k"), "book")
	if err := store.Resolve(t.Context(), idempotency.ID{Scope: "ann", Key: idempotency.Digest("k")}, idempotency.Resolution{Response: settled}); err != nil {
		t.Fatal(err)
	}
	s.want(t, as(t.Context(), "ann", "k"), "book", 7, true)
}

func TestServerOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*grpcretry.IdempotencyOptions){
		"no methods":      func(o *grpcretry.IdempotencyOptions) { o.Methods = nil },
		"a bare name":     func(o *grpcretry.IdempotencyOptions) { o.Methods = []string{"Check"} },
		"no principal":    func(o *grpcretry.IdempotencyOptions) { o.Principal = nil },
		"HTTP's scope":    func(o *grpcretry.IdempotencyOptions) { o.Options.Scope = idempotency.SingleTenant() },
		"a short memory":  func(o *grpcretry.IdempotencyOptions) { o.Options.Retention = time.Hour },
		"memory for real": func(o *grpcretry.IdempotencyOptions) { o.Options.Production = true },
	} {
		o := options()
		change(&o)
		if _, err := grpcretry.UnaryServerIdempotency(&memstore.Idempotency{}, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
