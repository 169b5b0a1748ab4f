package grpcretry_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/grpcretry"
)

// hole relays to a server as a firewall does that forgets connections: what they send
// is acknowledged, and goes nowhere. New ones work.
type hole struct {
	net.Listener
	to string

	mu  sync.Mutex
	all []*passage
}

// passage is one connection through a hole.
type passage struct {
	left atomic.Int64 // how many bytes may still come back; negative for any number
	late sync.RWMutex // held for writing while what comes back is late
	ends [2]net.Conn
}

func newHole(t testing.TB, to string) *hole {
	t.Helper()
	h := &hole{Listener: tcp(t), to: to}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			client, err := h.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", h.to)
			if err != nil {
				_ = client.Close()
				continue
			}
			p := &passage{ends: [2]net.Conn{client, server}}
			p.left.Store(-1)
			h.mu.Lock()
			h.all = append(h.all, p)
			h.mu.Unlock()
			ended.Go(func() { p.carry(server, client, false) })
			ended.Go(func() { p.carry(client, server, true) })
		}
	})
	t.Cleanup(func() {
		_ = h.Close()
		h.mu.Lock()
		for _, p := range h.all {
			_, _ = p.ends[0].Close(), p.ends[1].Close()
		}
		h.mu.Unlock()
		ended.Wait()
	})
	return h
}

func (p *passage) carry(to, from net.Conn, back bool) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if back {
			p.late.RLock()
		}
		switch left := p.left.Load(); {
		case left < 0:
			_, _ = to.Write(b[:n])
		case back:
			n = min(n, int(left))
			_, _ = to.Write(b[:n])
			p.left.Add(-int64(n))
		case left > 0:
			_, _ = to.Write(b[:n])
		}
		if back {
			p.late.RUnlock()
		}
		if err != nil {
			if p.left.Load() < 0 {
				_ = to.Close()
			}
			return
		}
	}
}

// forget lets so many bytes more come back over each connection there is, and then
// nothing, and returns how many connections there are.
func (h *hole) forget(after int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.all {
		p.left.Store(after)
	}
	return len(h.all)
}

// delay holds back what comes back over the connections there are.
func (h *hole) delay() (deliver func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.all[:len(h.all):len(h.all)]
	for _, p := range held {
		p.late.Lock()
	}
	return sync.OnceFunc(func() {
		for _, p := range held {
			p.late.Unlock()
		}
	})
}

func (h *hole) dialed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// served starts a server for s and returns where it listens.
func served(t testing.TB, s *service, opts ...grpc.ServerOption) string {
	t.Helper()
	l := tcp(t)
	srv := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(srv, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-done })
	return l.Addr().String()
}

// patient is a policy whose attempts a busy machine makes in time.
func patient() forbear.Policy {
	p := quick()
	p.PerAttempt = 4 * time.Second
	return p
}

// TestSilentConnections: however many connections have gone silent, a call loses one
// attempt to them at most, and the calls after it none.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, time.Now().Add(time.Hour))
	secure := credentials.NewTLS(&tls.Config{RootCAs: pool})
	for _, tc := range []struct {
		name   string
		holes  int
		after  int64 // bytes that still come
		tls    bool
		opts   []grpcretry.Option
		dial   []grpc.DialOption
		stream bool
	}{
		{"in clear", 1, 0, false, nil, []grpc.DialOption{plain()}, false},
		{"in clear, a stream", 1, 0, false, nil, []grpc.DialOption{plain()}, true},
		{"in clear, with a dialer of the user's", 1, 0, false, []grpcretry.Option{grpcretry.WithTransportCredentials(insecure.NewCredentials())}, []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}),
		}, false},
		{"TLS", 1, 0, true, []grpcretry.Option{grpcretry.WithTransportCredentials(secure)}, nil, false},
		{"within a frame", 1, 5, false, nil, []grpc.DialOption{plain()}, false},
		{"without a buffer", 1, 0, false, nil, []grpc.DialOption{plain(), grpc.WithReadBufferSize(0)}, false},
		{"thirty", 30, 0, false, nil, []grpc.DialOption{plain()}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &service{watch: func(s watchStream, _ int) error {
				return s.Send(&healthpb.HealthCheckResponse{Status: serving})
			}}
			var opts []grpc.ServerOption
			if tc.tls {
				opts = append(opts, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}})))
			}
			to := served(t, s, opts...)
			var holes []*hole
			var state resolver.State
			for range tc.holes {
				h := newHole(t, to)
				holes = append(holes, h)
				state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: h.Addr().String(), ServerName: "127.0.0.1"}}})
			}
			names := manual.NewBuilderWithScheme("holes")
			names.InitialState(state)
			dial := grpcretry.DialOptions(retryer(t, patient()), append(tc.opts, grpcretry.WithIdempotent("*"))...)
			dial = append(dial, grpc.WithResolvers(names), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
			conn, err := grpc.NewClient("holes:///ledger", append(dial, tc.dial...)...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			call := func() error {
				if !tc.stream {
					return check(t, t.Context(), conn)
				}
				_, err := watch(t, t.Context(), conn)
				return err
			}
			for all := false; !all; { // until each address has a connection
				if err := call(); err != nil {
					t.Fatal(err)
				}
				all = true
				for _, h := range holes {
					all = all && h.dialed() > 0
				}
			}
			for _, h := range holes {
				h.forget(tc.after)
			}
			before := s.attempts()
			for i := range 5 {
				if err := call(); err != nil {
					t.Fatalf("call %d: %v", i+1, err)
				}
			}
			if n := s.attempts() - before; n != 5 && tc.after == 0 {
				t.Errorf("the server saw %d attempts, want 5", n)
			}
			lost := 0
			for _, n := range s.values(grpcretry.HeaderAttempts)[before:] {
				switch n {
				case "":
				case "1":
					lost++
				default:
					t.Errorf("a call lost %s attempts, want 1 at most", n)
				}
			}
			if lost != 1 {
				t.Errorf("%d calls lost an attempt, want 1", lost)
			}
		})
	}
}

// TestSlowServerKeepsItsStreams: when the silence was not for good, what is under way on
// the connection goes on.
func TestSlowServerKeepsItsStreams(t *testing.T) {
	t.Parallel()
	say := make(chan struct{})
	s := &service{
		watch: func(s watchStream, _ int) error {
			message := &healthpb.HealthCheckResponse{Status: serving}
			if err := s.Send(message); err != nil {
				return err
			}
			<-say
			return s.Send(message)
		},
	}
	h := newHole(t, served(t, s))
	dial := append(grpcretry.DialOptions(retryer(t, patient()), grpcretry.WithIdempotent("*")), plain())
	conn, err := grpc.NewClient(h.Addr().String(), dial...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	deliver := h.delay()
	defer deliver()
	if err := check(t, t.Context(), conn); err != nil {
		t.Errorf("a call in the silence: %v, want its second attempt to succeed", err)
	}
	if n := h.dialed(); n != 2 {
		t.Errorf("%d connections were made, want a second for the second attempt", n)
	}
	close(say)
	deliver()
	if _, err := stream.Recv(); err != nil {
		t.Errorf("the stream on the first connection: %v, want its second message", err)
	}
}

// TestSilenceThatACallersDeadlineEnds: the call has no time left for another attempt, and
// those after it find a connection that works.
func TestSilenceThatACallersDeadlineEnds(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		s := &service{watch: func(s watchStream, _ int) error {
			return s.Send(&healthpb.HealthCheckResponse{Status: serving})
		}}
		h := newHole(t, served(t, s))
		conn, err := grpc.NewClient(h.Addr().String(), append(grpcretry.DialOptions(retryer(t, patient()), grpcretry.WithIdempotent("*")), plain())...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := check(t, t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		h.forget(0)
		hurry, cancel := context.WithTimeout(t.Context(), patient().PerAttempt/2)
		if stream {
			_, err = watch(t, hurry, conn)
		} else {
			err = check(t, hurry, conn)
		}
		if cancel(); err == nil {
			t.Fatal("a call over a silent connection succeeded")
		}
		if err := check(t, t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if got := s.values(grpcretry.HeaderAttempts); !slices.Equal(got, []string{"", ""}) {
			t.Errorf("stream %v: %s: %q; want first attempts alone", stream, grpcretry.HeaderAttempts, got)
		}
	}
}

// TestSilentConnectionUnderABurst: calls that meet one silence together are sent again,
// whatever they leave of the budget, and the breaker stays closed.
func TestSilentConnectionUnderABurst(t *testing.T) {
	t.Parallel()
	p := patient()
	p.Breaker, p.Strict = breaker.Policy{}, true
	var stopped, opened atomic.Int64
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithObserver(&forbear.Observer{
		Stopped:      func(context.Context, forbear.Stopped) { stopped.Add(1) },
		BreakerMoved: func(breaker.Transition) { opened.Add(1) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	h := newHole(t, served(t, &service{}))
	conn, err := grpc.NewClient(h.Addr().String(), append(grpcretry.DialOptions(r, grpcretry.WithIdempotent("*")), plain())...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := check(t, t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	h.forget(0)
	var burst sync.WaitGroup
	for range 40 {
		burst.Go(func() {
			if err := check(t, t.Context(), conn); err != nil {
				t.Error(err)
			}
		})
	}
	burst.Wait()
	if n, m := stopped.Load(), opened.Load(); n != 0 || m != 0 {
		t.Errorf("%d calls stopped, the breaker moved %d times; want 0, 0", n, m)
	}
}
