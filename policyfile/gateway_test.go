package policyfile

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func gatewayFile(settings string) string {
	return "dependencies:\n  payments: {url: http://p.internal}\ngateway:\n  " + settings + "\n  routes:\n    - {prefix: /pay, dependency: payments}\n"
}

func TestTrustedProxies(t *testing.T) {
	for text, want := range map[string][]string{
		"trusted_proxies: [10.0.0.0/8]":                     {"10.0.0.0/8"},
		"trusted_proxies: [10.1.2.3, '::1', 'fd00::/8']":    {"10.1.2.3/32", "::1/128", "fd00::/8"},
		"trusted_proxies: [127.0.0.0/8, 127.0.0.0/8]":       {"127.0.0.0/8"},
		"trusted_proxies: ['::ffff:10.1.2.3', 0.0.0.0/0]":   {"10.1.2.3/32", "0.0.0.0/0"},
		"trusted_proxies: []":                               nil,
		"listen: 127.0.0.1:80":                              nil,
		"trusted_proxies:\n    - 192.168.0.0/16\n    - ::1": {"192.168.0.0/16", "::1/128"},
	} {
		f, err := Parse("f", []byte(gatewayFile(text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, p := range f.Gateway.TrustedProxies {
			got = append(got, p.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
		data, err := Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("f", data)
		if err != nil || !slices.Equal(back.Gateway.TrustedProxies, f.Gateway.TrustedProxies) {
			t.Errorf("%s: came back as %v, %v from\n%s", text, back, err, data)
		}
		if changes := Diff(f, back); len(changes) > 0 {
			t.Errorf("%s: a difference to itself: %v", text, changes)
		}
	}
	a, _ := Parse("f", []byte(gatewayFile("trusted_proxies: [10.0.0.0/8]")))
	b, _ := Parse("f", []byte(gatewayFile("trusted_proxies: [10.0.0.0/16]")))
	if changes := Diff(a, b); len(changes) != 1 || changes[0].Field != "gateway.trusted_proxies" || !strings.Contains(changes[0].Text, "10.0.0.0/16, it was 10.0.0.0/8") {
		t.Errorf("the difference: %v", changes)
	}
}

func TestGatewayFaults(t *testing.T) {
	for text, want := range map[string]string{
		"trusted_proxies: 10.0.0.0/8":            "f:4:20: gateway.trusted_proxies is",
		"trusted_proxies: [proxy.internal]":      `f:4:21: a member of gateway.trusted_proxies is "proxy.internal": want an address or a prefix such as 10.0.0.0/8`,
		"trusted_proxies: [10.0.0.0/33]":         `f:4:21: a member of gateway.trusted_proxies is "10.0.0.0/33": want`,
		"trusted_proxies: [10.0.0.1/8]":          `f:4:21: a member of gateway.trusted_proxies is 10.0.0.1/8, which has host bits set: write 10.0.0.0/8, or 10.0.0.1 for that address alone`,
		"trusted_proxies: ['fe80::1%eth0']":      `f:4:21: a member of gateway.trusted_proxies is "fe80::1%eth0": want`,
		"trusted_proxies: ['::ffff:0.0.0.0/96']": `f:4:21: a member of gateway.trusted_proxies is "::ffff:0.0.0.0/96": want`,
		"trusted_proxy: [10.0.0.0/8]":            "f:4:3: unknown key \"trusted_proxy\" in gateway: did you mean trusted_proxies?",
		"listen: 127.0.0.1:70000":                `f:4:11: gateway.listen is "127.0.0.1:70000": want`,
		"listen: 127.0.0.1:-1":                   `f:4:11: gateway.listen is "127.0.0.1:-1": want`,
	} {
		_, err := Parse("f", []byte(gatewayFile(text)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	many := "trusted_proxies: [" + strings.Repeat("10.0.0.1, ", maxProxies) + "10.0.0.2]"
	if _, err := Parse("f", []byte(gatewayFile(many))); err == nil || !strings.Contains(err.Error(), "want at most 1000") {
		t.Errorf("too many: %v", err)
	}
}

// What a dependency is and what a route does with it must fit: a gateway would be
// refused, or would serve nothing but errors.
func TestRoutesThatDoNotFit(t *testing.T) {
	file := func(dependency, route string) string {
		return "dependencies:\n  a: {" + dependency + "}\ngateway:\n  routes:\n    - {prefix: /a, dependency: a" + route + "}\n"
	}
	for text, want := range map[string]string{
		file("url: http://a.internal, kind: grpc, http2: off", ""):                                                  "f:5:7: dependency a of this route has kind grpc, which needs HTTP/2: drop http2: off",
		file("url: https://a.internal, kind: grpc", ""):                                                             "",
		file("url: https://a.internal, credentials: {secret: {file: s}}", ", idempotency: on"):                      "f:5:7: this route has idempotency keys, so it forwards its callers' Authorization: drop the credentials of dependency a",
		file("url: https://a.internal, credentials: {secret: {file: s}}", ", idempotency: off"):                     "",
		file("url: https://a.internal, health: {endpoint: https://a.internal/ready, interval: 5s}, kind: sync", ""): "",
	} {
		_, err := Parse("f", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestServable(t *testing.T) {
	route := func(prefix string) string {
		return "dependencies:\n  a: {url: http://a.internal}\ngateway:\n  routes:\n    - {prefix: " + prefix + ", dependency: a}\n"
	}
	for _, tt := range []struct {
		name, text string
		delivers   bool
		want       string
	}{
		{"well", route("/a"), true, ""},
		{"no gateway", "dependencies:\n  a: {}\n", true, "f:1:1: it has no gateway.routes, so there is nothing to serve: add routes, as forbear init writes them"},
		{"no routes", "gateway:\n  listen: 127.0.0.1:80\n", false, "f:2:3: it has no gateway.routes, so there is nothing to serve: add routes, as forbear init writes them"},
		{"hidden", route("/v1"), true, "f:5:7: the route /v1 is where the delivery API is: move the API with --api, or turn it off with --no-delivery"},
		{"hidden below", route("/v1/pay"), true, "f:5:7: the route /v1/pay is where"},
		{"not hidden", route("/v1"), false, ""},
		{"another", route("/v10"), true, ""},
	} {
		f, err := Parse("f", []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Servable(tt.delivers)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A route that is refused is there, and is not missing as well.
func TestFaultyRoutesAreNotMissing(t *testing.T) {
	f, refused, err := Inspect("f", []byte("gateway:\n  routes:\n    - {prefix: /a}\n"))
	if f == nil {
		t.Fatalf("refused %v: %v", refused, err)
	}
	if err == nil || f.Servable(true) != nil {
		t.Errorf("got %v, and %v", err, f.Servable(true))
	}
}

func TestAsksForDeliveries(t *testing.T) {
	for text, want := range map[string]string{
		gatewayFile("listen: 127.0.0.1:80"):  "",
		ingressFile("on"):                    "idempotency keys in the policy file",
		ingressFile("off"):                   "",
		"webhooks: {a: {}}":                  "webhooks in the policy file",
		"dependencies: {a: {kind: webhook}}": "webhooks in the policy file",
		"consumers: {a: {}}":                 "",
	} {
		f, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.AsksForDeliveries(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestTrusts(t *testing.T) {
	g := Gateway{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "::1": true, "11.0.0.1": false, "::2": false} {
		if got := g.Trusts(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if (Gateway{}).Trusts(netip.MustParseAddr("127.0.0.1")) || g.Trusts(netip.Addr{}) {
		t.Error("no address is trusted where none is named")
	}
}
