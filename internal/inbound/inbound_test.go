package inbound_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/inbound"
)

func TestDeadline(t *testing.T) {
	for value, want := range map[string]int64{"1000": 1000, "1": 1, "0": 0, "-5": 0, "": 0, "tomorrow": 0, "1e9": 0} {
		if due, ok := inbound.Deadline([]string{value}); ok != (want > 0) || ok && due.UnixMilli() != want {
			t.Errorf("%q: %v, %v", value, due, ok)
		}
	}
	if _, ok := inbound.Deadline([]string{"1000", "1000"}); ok {
		t.Error("two deadlines are believed")
	}
}

func TestLateness(t *testing.T) {
	for left, want := range map[time.Duration]string{
		50 * time.Millisecond:       "the deadline of the request is in 50ms by this server's clock, which leaves no time for a response",
		0:                           "the deadline of the request passed 0s ago by this server's clock",
		-6012345 * time.Microsecond: "the deadline of the request passed 6.012s ago by this server's clock",
	} {
		if got := inbound.Lateness(left); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}

func TestCorrelation(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, tc := range []struct {
		name string
		h    http.Header
		want string
	}{
		{"none", http.Header{}, ""},
		{"its own", http.Header{"X-Correlation-Id": {"a"}, "X-Request-Id": {"b"}}, "a"},
		{"the request's", http.Header{"X-Request-Id": {"b"}}, "b"},
		{"its own cannot be used", http.Header{"X-Correlation-Id": {"a b"}, "X-Request-Id": {"b"}}, "b"},
		{"a line break", http.Header{"X-Correlation-Id": {"a\nb"}}, ""},
		{"not ASCII", http.Header{"X-Correlation-Id": {"ä"}}, ""},
		{"longest", http.Header{"X-Correlation-Id": {strings.Repeat("x", 128)}}, strings.Repeat("x", 128)},
		{"too long", http.Header{"X-Correlation-Id": {strings.Repeat("x", 129)}}, ""},
		{"twice", http.Header{"X-Correlation-Id": {"a", "b"}}, ""},
		{"the trace's", http.Header{"Traceparent": {"00-" + trace + "-00f067aa0ba902b7-01"}}, trace},
		{"no trace", http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}}, ""},
	} {
		if got := inbound.Correlation(tc.h); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
