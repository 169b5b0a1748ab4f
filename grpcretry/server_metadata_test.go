package grpcretry_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// meta makes one call and returns the names that the test cares about, of the headers
// and the trailers that came with its response.
func (s *shop) meta(t *testing.T, key string, names ...string) (header, trailer metadata.MD, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(as(t.Context(), "ann", key), testDeadline)
	defer cancel()
	_, err = healthpb.NewHealthClient(s.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
	for _, md := range []metadata.MD{header, trailer} {
		maps.DeleteFunc(md, func(name string, _ []string) bool {
			return !slices.Contains(names, name)
		})
	}
	return header, trailer, err
}

// What a handler sets beside its response is in the responses of all duplicates, those
// of a final error too; what was for the first caller alone is not.
func TestMetadataIsReplayed(t *testing.T) {
	binary := "\x00\xff line\nbreak"
	for _, code := range []codes.Code{codes.OK, codes.NotFound} {
		t.Run(code.String(), func(t *testing.T) {
			s := open(t, &memstore.Idempotency{}, func(ctx context.Context, _ int64) error {
				for _, err := range []error{
					grpc.SetHeader(ctx, metadata.Pairs("x-order", "7", "x-order", "a value, with  spaces ", "x-order-bin", binary, "Set-Cookie", "secret")),
					grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "12", "x-cost-bin", binary, "x-request-id", "r1", "grpc-retry-pushback-ms", "7")),
					grpc.SendHeader(ctx, metadata.Pairs("x-sent", "")),
				} {
					if err != nil {
						t.Error(err)
					}
				}
				if grpc.SetHeader(ctx, metadata.Pairs("x-late", "1")) == nil {
					t.Error("headers could be set after they were sent")
				}
				if code != codes.OK {
					return status.Error(code, "no such order")
				}
				return nil
			}, options())
			names := []string{"x-order", "x-order-bin", "x-sent", "x-late", "x-cost", "x-cost-bin", "set-cookie", "x-request-id", "grpc-retry-pushback-ms"}
			for n, first := range []bool{true, false, false} {
				header, trailer, err := s.meta(t, "k", names...)
				wantHeader := metadata.MD{"x-order": {"7", "a value, with  spaces "}, "x-order-bin": {binary}, "x-sent": {""}}
				wantTrailer := metadata.MD{"x-cost": {"12"}, "x-cost-bin": {binary}}
				if first {
					wantHeader["set-cookie"] = []string{"secret"}
					wantTrailer["x-request-id"], wantTrailer["grpc-retry-pushback-ms"] = []string{"r1"}, []string{"7"}
				}
				if status.Code(err) != code || !reflect.DeepEqual(header, wantHeader) || !reflect.DeepEqual(trailer, wantTrailer) {
					t.Errorf("call %d: %v, headers %q, trailers %q; want %v, %q, %q", n+1, err, header, trailer, code, wantHeader, wantTrailer)
				}
			}
			if s.runs.Load() != 1 {
				t.Errorf("%d runs, want 1", s.runs.Load())
			}
		})
	}
}

// lossy is a store whose records have the headers that those of before had.
type lossy struct{ idempotency.Store }

func (l lossy) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, d time.Duration) error {
	for name := range a.Header {
		if name != "Content-Type" {
			delete(a.Header, name)
		}
	}
	return l.Store.Complete(ctx, t, a, d)
}

// A record without metadata, as they were, and a response with more of it than is
// stored: the duplicate gets the response, and no part of the metadata.
func TestMetadataThatIsNotStored(t *testing.T) {
	for name, tc := range map[string]struct {
		store idempotency.Store
		value string
	}{
		"a record of before": {lossy{&memstore.Idempotency{}}, "7"},
		"too large":          {&memstore.Idempotency{}, strings.Repeat("7", 9<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, tc.store, func(ctx context.Context, _ int64) error {
				_ = grpc.SetHeader(ctx, metadata.Pairs("x-order", tc.value, "x-small", "1"))
				return grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "12"))
			}, options())
			header, trailer, err := s.meta(t, "k", "x-order", "x-small", "x-cost")
			if err != nil || header.Get("x-order")[0] != tc.value || len(trailer) != 1 {
				t.Errorf("the first: %v, headers %.20q, trailers %q", err, header, trailer)
			}
			header, trailer, err = s.meta(t, "k", "x-order", "x-small", "x-cost", grpcretry.HeaderReplayed)
			if err != nil || len(header) != 1 || len(trailer) != 0 {
				t.Errorf("the duplicate: %v, headers %q, trailers %q; want the replay's own alone", err, header, trailer)
			}
		})
	}
}

// What a run set whose claim had passed to another is not seen: its response is not the
// one that counts.
func TestMetadataOfALostRun(t *testing.T) {
	store := &fencing{Store: &memstore.Idempotency{}}
	s := open(t, store, func(ctx context.Context, _ int64) error {
		return grpc.SetHeader(ctx, metadata.Pairs("x-order", "lost"))
	}, options())
	header, _, err := s.meta(t, "k", "x-order")
	if err == nil || len(header) != 0 {
		t.Errorf("%v, headers %q; want a refusal without them", err, header)
	}
}

// fencing is a store in which every claim is lost before its end.
type fencing struct{ idempotency.Store }

func (fencing) Complete(context.Context, idempotency.Token, idempotency.Response, time.Duration) error {
	return idempotency.ErrFenced
}

// Streams are not done once for a key: one that carries a key is told so, by a status
// that ends the call, and nothing of it reaches the handler.
func TestKeyedStreamsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		key   bool
		pass  []string
		reads bool
	}{
		{"with a key", true, nil, false},
		{"without one", false, nil, true},
		{"that honors keys by itself", true, []string{watchMethod}, true},
		{"of a service that does", true, []string{"/grpc.health.v1.Health/*"}, true},
		{"of another method", true, []string{checkMethod}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &service{watch: func(stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse], _ int) error {
				return stream.Send(&healthpb.HealthCheckResponse{Status: serving})
			}}
			dial := append(grpcretry.DialOptions(retryer(t, quick())), plain())
			conn := start(t, s, tcp(t), []grpc.ServerOption{grpc.ChainStreamInterceptor(grpcretry.StreamServerIdempotency(tc.pass...))}, dial...)
			ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
			defer cancel()
			if tc.key {
				ctx = grpcretry.WithKey(ctx, "k")
			}
			stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if tc.reads {
				if err != nil || m.GetStatus() != serving || s.attempts() != 1 {
					t.Errorf("%v, %v after %d attempts", m, err, s.attempts())
				}
				return
			}
			refused(t, err, codes.Unimplemented, "KEY_ON_STREAM", false)
			if s.attempts() != 0 {
				t.Error("it reached the handler")
			}
		})
	}
}

func TestStreamsAreNoMethodsOfKeys(t *testing.T) {
	o := options()
	o.Methods = append(o.Methods, watchMethod)
	if _, err := grpcretry.UnaryServerIdempotency(&memstore.Idempotency{}, o); err == nil || !strings.Contains(err.Error(), watchMethod) {
		t.Errorf("got %v, want a refusal that names the stream", err)
	}
}
