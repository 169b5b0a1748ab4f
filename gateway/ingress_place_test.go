package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A key is valid for one caller at one host, one route and one dependency. The same key
// elsewhere is another operation: its service is asked, and no one gets the response of
// another service.
func TestKeysAreValidAtOnePlace(t *testing.T) {
	asked := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++ // one request at a time
		fmt.Fprintf(w, "%d by %s for %s", asked, r.URL.Path, r.Header.Get("X-Forwarded-Host"))
	}))
	t.Cleanup(up.Close)
	store := &memstore.Idempotency{}
	route := func(host, prefix, dependency string, conditions map[string]string) gateway.Route {
		target, err := url.Parse(up.URL + "/" + dependency)
		if err != nil {
			t.Fatal(err)
		}
		return gateway.Route{
			Host: host, Prefix: prefix, Headers: conditions, Target: target, KeepPrefix: true,
			Retryer: forbear.Must(forbear.New(dependency, forbear.Policy{}, forbear.WithoutLog())),
			Ingress: &gateway.Ingress{Store: store, Options: idempotency.Options{Scope: gateway.PrincipalHeader("X-Principal")}},
		}
	}
	g, err := gateway.New(gateway.Config{
		Logger: slog.New(slog.DiscardHandler), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Routes: []gateway.Route{
			route("a.test", "/orders", "a", nil),
			route("b.test", "/orders", "b", nil),
			route("", "/orders", "rest", nil),
			route("", "/orders", "rest", map[string]string{"X-Version": "2"}),
			route("", "/orders/new", "rest", nil),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	post := func(host, path string, header ...string) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"amount":10}`))
		r.Host, r.RemoteAddr = host, "192.0.2.1:1000"
		r.Header.Set("Idempotency-Key", "order-4711")
		r.Header.Set("X-Principal", "ann")
		for i := 0; i+1 < len(header); i += 2 {
			if r.Header.Set(header[i], header[i+1]); header[i] == "X-Forwarded-Host" {
				r.RemoteAddr = "10.0.0.1:1000"
			}
		}
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%s%s: %d %s", host, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	seen := map[string]string{}
	for _, p := range []struct {
		name   string
		host   string
		path   string
		header []string
	}{
		{"one host", "a.test", "/orders/1", nil},
		{"another host and dependency", "b.test", "/orders/1", nil},
		{"a host of a route for all", "c.test", "/orders/1", nil},
		{"another one", "d.test", "/orders/1", nil},
		{"a route of a header", "d.test", "/orders/1", []string{"X-Version", "2"}},
		{"a longer route", "d.test", "/orders/new", nil},
		{"another caller", "d.test", "/orders/1", []string{"X-Principal", "bob"}},
		{"a caller named as a place", "d.test", "/orders/1", []string{"X-Principal", "rest/d.test/orders ann"}},
		{"a host that a proxy tells", "d.test", "/orders/1", []string{"X-Forwarded-Host", "e.test"}},
	} {
		got := post(p.host, p.path, p.header...)
		if other, taken := seen[got]; taken {
			t.Errorf("%s got the response of %s: %s", p.name, other, got)
		}
		seen[got] = p.name
		if again := post(p.host, p.path, p.header...); again != got {
			t.Errorf("%s ran twice: %s, %s", p.name, got, again)
		}
	}
	// One place has many spellings.
	first := post("a.test", "/orders/1")
	for _, host := range []string{"A.Test", "a.test:80", "a.test:8443"} {
		if got := post(host, "/orders/1"); got != first {
			t.Errorf("%s is another place than a.test: %s", host, got)
		}
	}
}
