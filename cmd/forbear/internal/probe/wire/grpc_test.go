package wire

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/forbear-go/forbear/edge/grpcwire"
)

// TestGRPC: gRPC's own client reads what the steps write as it is meant.
func TestGRPC(t *testing.T) {
	for _, c := range []struct {
		name string
		step Step
		want codes.Code
	}{
		{"OK", GRPC(0), codes.OK},
		{"a status", GRPC(14, "grpc-retry-pushback-ms: 2000"), codes.Unavailable},
		{"a status after the header", GRPCBegun(8), codes.ResourceExhausted},
		{"half of a message", GRPCHalf(Close), codes.Unavailable},
		{"no status", GRPCWithoutStatus, codes.Internal},
		{"a proxy's 503", Status(503), codes.Unavailable},
		{"a proxy's 404", Status(404), codes.Unimplemented},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := listen(t, always(c.step))
			conn, err := grpc.NewClient(strings.TrimPrefix(s.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			var trailer metadata.MD
			err = conn.Invoke(t.Context(), "/a.B/C", &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer))
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if c.name == "a status" && trailer.Get("grpc-retry-pushback-ms")[0] != "2000" {
				t.Errorf("got %v", trailer)
			}
		})
	}
}

// TestRetryInfo: the details are read by gRPC's own client, and by ours.
func TestRetryInfo(t *testing.T) {
	line := RetryInfo(14, 2*time.Second)
	s := listen(t, always(GRPC(14, line)))
	conn, err := grpc.NewClient(strings.TrimPrefix(s.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	err = conn.Invoke(t.Context(), "/a.B/C", &emptypb.Empty{}, &emptypb.Empty{})
	details := status.Convert(err).Details()
	if len(details) != 1 || details[0].(*errdetails.RetryInfo).RetryDelay.AsDuration() != 2*time.Second {
		t.Errorf("%v: %v", err, details)
	}
	_, value, _ := strings.Cut(line, ": ")
	if d := grpcwire.DetailsOf([]string{value}); d.Hint.Floor != 2*time.Second {
		t.Errorf("%+v", d)
	}
}

// TestGRPCOverHTTP1: a client that does not speak HTTP/2 gets no response.
func TestGRPCOverHTTP1(t *testing.T) {
	for _, step := range []Step{GRPC(0), GRPCBegun(0), GRPCHalf(Close), GRPCWithoutStatus} {
		s := listen(t, always(step))
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
		_ = conn.Close()
	}
}
