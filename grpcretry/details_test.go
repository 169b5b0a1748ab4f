package grpcretry_test

import (
	"encoding/base64"
	"math"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/grpcretry"
)

// TestDetailsOnTheWire: what a gateway reads of a status without protobuf is what
// protobuf reads.
func TestDetailsOnTheWire(t *testing.T) {
	const most = math.MaxInt64 / 1_000_000_000 // seconds in a Duration
	for _, delay := range []*durationpb.Duration{
		nil,
		{},
		{Nanos: 1},
		{Seconds: 2, Nanos: 500_000_000},
		{Seconds: -1},
		{Nanos: -1},
		{Seconds: 1, Nanos: -1},
		{Seconds: math.MaxInt64, Nanos: math.MaxInt32},
		{Seconds: math.MinInt64, Nanos: math.MinInt32},
		{Seconds: most + 1},
		{Seconds: most, Nanos: 999_999_999},
		{Seconds: -most, Nanos: -999_999_999},
	} {
		s, err := status.New(codes.ResourceExhausted, "busy").WithDetails(
			&errdetails.ErrorInfo{Reason: "BUSY", Domain: "test", Metadata: map[string]string{"a": "b"}},
			&errdetails.RetryInfo{RetryDelay: delay},
			&errdetails.Help{Links: []*errdetails.Help_Link{{Url: "http://a/"}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(s.Proto())
		if err != nil {
			t.Fatal(err)
		}
		var want forbear.Hint
		if d := delay.AsDuration(); d < 0 {
			want.Stop = true
		} else {
			want.Floor = d
		}
		got := grpcwire.DetailsOf([]string{base64.RawStdEncoding.EncodeToString(raw)}).Hint
		if got.Floor != want.Floor || got.Stop != want.Stop {
			t.Errorf("%v: on the wire %+v, want %+v", delay, got, want)
		}
		if f := grpcretry.Classify(t.Context(), s.Err(), nil); f.Hint != got {
			t.Errorf("%v: the interceptors read %+v, the wire says %+v", delay, f.Hint, got)
		}
	}
}
