//forbear:plain nothing runs at once
package inbound_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/layer"
)

// The number of a caller's attempt is read from forbear's own header, Envoy's and
// gRPC's, as net/http and as gRPC's metadata have them. What cannot be believed says
// nothing.
func TestRetry(t *testing.T) {
	own, envoy, grpc := "X-Retry-Attempt", "X-Envoy-Attempt-Count", "Grpc-Previous-Rpc-Attempts"
	for _, tc := range []struct {
		name string
		h    http.Header
		want int // the number of the attempt; 0: none
	}{
		{"none", nil, 0},
		{"first", http.Header{own: {"0"}}, 0},
		{"second", http.Header{own: {"1"}}, 2},
		{"most", http.Header{own: {"999"}}, 1000},
		{"absurd", http.Header{own: {"1000"}}, 0},
		{"beyond all numbers", http.Header{own: {"99999999999999999999"}}, 0},
		{"negative", http.Header{own: {"-1"}}, 0},
		{"no number", http.Header{own: {"x"}}, 0},
		{"twice", http.Header{own: {"1", "2"}}, 0},
		{"Envoy's first", http.Header{envoy: {"1"}}, 0},
		{"Envoy's second", http.Header{envoy: {"2"}}, 2},
		{"Envoy's none", http.Header{envoy: {"0"}}, 0},
		{"Envoy's most", http.Header{envoy: {"1000"}}, 1000},
		{"Envoy's absurd", http.Header{envoy: {"1001"}}, 0},
		{"Envoy's twice", http.Header{envoy: {"2", "2"}}, 0},
		{"gRPC's first", http.Header{grpc: {"0"}}, 0},
		{"gRPC's second", http.Header{grpc: {"1"}}, 2},
		{"gRPC's absurd", http.Header{grpc: {"1000"}}, 0},
		{"gRPC's empty", http.Header{grpc: {""}}, 0},
		{"first of one layer, third of another", http.Header{own: {"0"}, envoy: {"3"}}, 3},
		{"the highest of all", http.Header{own: {"4"}, envoy: {"2"}, grpc: {"2"}}, 5},
		{"one that can be read", http.Header{own: {"x"}, grpc: {"2"}}, 3},
	} {
		metadata := map[string][]string{}
		for name, lines := range tc.h {
			metadata[strings.ToLower(name)] = lines
		}
		for kind, h := range map[string]map[string][]string{"a header": tc.h, "metadata": metadata} {
			a := layer.Of(inbound.Retry(t.Context(), "orders", h))
			if (a != nil) != (tc.want > 0) || a != nil && (a.Number != tc.want || a.Dependency != "orders") {
				t.Errorf("%s in %s: %+v; want attempt %d", tc.name, kind, a, tc.want)
			}
		}
	}
}

// What a request says of its sender's own attempts is not what a layer above says.
func TestRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		h    http.Header
		want int
	}{
		"own":   {http.Header{"X-Retry-Attempt": {"3"}}, 0},
		"Envoy": {http.Header{"X-Envoy-Attempt-Count": {"3"}}, 3},
		"gRPC":  {http.Header{"Grpc-Previous-Rpc-Attempts": {"3"}}, 4},
	} {
		if got := inbound.Repeated(tc.h); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
