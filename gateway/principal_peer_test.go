package gateway_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/forbear-go/forbear/gateway"
)

// The header counts by the connection that it came over.
func TestPrincipalHeaderFrom(t *testing.T) {
	proxies := netip.MustParsePrefix("10.0.0.0/8")
	principal := gateway.PrincipalHeaderFrom("X-Principal", proxies.Contains)
	for _, tt := range []struct {
		peer   string
		values []string
		want   string
	}{
		{"10.1.2.3:4711", []string{"ann"}, "ann"},
		{"[::ffff:10.1.2.3]:4711", []string{"ann"}, "ann"},
		{"10.1.2.3:4711", nil, ""},
		{"10.1.2.3:4711", []string{""}, ""},
		{"10.1.2.3:4711", []string{"ann", "bob"}, ""},
		{"11.1.2.3:4711", []string{"ann"}, ""},
		{"[fe80::1%eth0]:4711", []string{"ann"}, ""},
		{"10.1.2.3", []string{"ann"}, ""},
		{"@", []string{"ann"}, ""},
		{"", []string{"ann"}, ""},
	} {
		r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": {"10.1.2.3"}, "Forwarded": {"for=10.1.2.3"}}}
		if tt.values != nil {
			r.Header["X-Principal"] = tt.values
		}
		if got, err := principal(r); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q %q: got %q, %v; want %q", tt.peer, tt.values, got, err, tt.want)
		}
	}
}
