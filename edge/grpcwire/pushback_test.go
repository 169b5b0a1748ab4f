package grpcwire_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/reason"
)

// TestPushback: the values of grpc-retry-pushback-ms, as gRFC A6 has them: a 32-bit
// number of milliseconds, without needless leading zeros; a negative one and what cannot
// be read end the call. Where forbear does otherwise, the row says so.
func TestPushback(t *testing.T) {
	const notFound, unavailable = 5, 14
	policy := forbear.Policy{Kind: forbear.GRPC} // waits of up to 1, 2 and 4 s, within 30 s
	for _, tt := range []struct {
		values    string // separated by |
		code      uint32
		attempt   int
		from, to  int // milliseconds; to is a tenth later: A6 has no spread
		stop      forbear.Reason
		otherwise string // what A6 says instead
	}{
		{values: "0"},
		{values: "1", from: 1, to: 1}, // and 100 µs
		{values: "250", from: 250, to: 275},
		{values: "25000", from: 25_000, to: 27_500},
		{values: "250", attempt: 2, from: 250, to: 2025, otherwise: "250 ms at each attempt; here the backoff is back from the second retry on"},
		{values: "250", attempt: 4, stop: reason.Exhausted},
		{values: "250", code: notFound, stop: reason.Terminal},
		{values: "-1", stop: reason.ServerStop},
		{values: "-250", stop: reason.ServerStop},
		{values: "-2147483648", stop: reason.ServerStop},
		{values: "", stop: reason.ServerStop},
		{values: "soon", stop: reason.ServerStop},
		{values: "2.5", stop: reason.ServerStop},
		{values: "1e3", stop: reason.ServerStop},
		{values: "250 ", stop: reason.ServerStop},
		{values: "250ms", stop: reason.ServerStop},
		{values: "250|250", stop: reason.ServerStop},
		{values: "0250", from: 250, to: 275, otherwise: "unreadable; grpc-go reads it"},
		{values: "+250", from: 250, to: 275, otherwise: "unreadable; grpc-go reads it"},
		{values: "2147483647", stop: reason.HintTooLong}, // 25 days
		{values: "2147483648", stop: reason.HintTooLong, otherwise: "unreadable, which stops as well"},
		{values: "9223372036854775807", stop: reason.HintTooLong, otherwise: "unreadable, which stops as well"},
		{values: "9223372036854775808", stop: reason.ServerStop},
	} {
		now := time.Unix(1_000_000, 0)
		state := forbear.State{Attempt: cmp.Or(tt.attempt, 1), Start: now}
		f := grpcwire.Judge(cmp.Or(tt.code, unavailable), grpcwire.Details{}, strings.Split(tt.values, "|"), false)
		d := forbear.Decide(&policy, state, f, now, func() float64 { return 0 })
		from, to := time.Duration(tt.from)*time.Millisecond, time.Duration(tt.to)*time.Millisecond
		switch {
		case tt.stop != reason.None && (d.Retry || d.Reason != tt.stop):
			t.Errorf("%q: retry %v, %v, want %v; gRFC A6: %s", tt.values, d.Retry, d.Reason, tt.stop, tt.otherwise)
		case tt.stop == reason.None && (!d.Retry || d.Floor != from || d.Ceiling.Truncate(time.Millisecond) != to):
			t.Errorf("%q: retry %v after %v to %v, want %v to %v; gRFC A6: %s", tt.values, d.Retry, d.Floor, d.Ceiling, from, to, cmp.Or(tt.otherwise, "the same, without a spread"))
		}
	}
}
