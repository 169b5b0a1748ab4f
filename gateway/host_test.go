package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// The host of a request goes on in X-Forwarded-Host: one that is no name or address is
// refused, whichever protocol brought it.
func TestHosts(t *testing.T) {
	got := ""
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Forwarded-Host") }))
	t.Cleanup(up.Close)
	target, _ := url.Parse(up.URL)
	g, err := gateway.New(gateway.Config{Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{{
		Prefix: "/", Target: target, Retryer: forbear.Must(forbear.New("d", forbear.Policy{}, forbear.WithoutLog())),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for host, ok := range map[string]bool{
		"a": true, "A.Test:8080": true, "a_b.test.": true, "192.0.2.1:80": true, "[::1]": true, "[fe80::1%25en0]:80": true, "xn--bcher-kva.test": true, "a:": true, "": true,
		"a,b": false, "x y": false, "x/y": false, "x#": false, "x?": false, "u@x": false, "x\\y": false, "a:80:90": false, "a:http": false, "[::1": false, "::1]": false, "[::1]x": false, "ü": false, "a;b": false, "a\x00": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host, r.Proto, r.ProtoMajor, r.ProtoMinor, got = host, "HTTP/2.0", 2, 0, "nothing"
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		switch {
		case ok && (w.Code != http.StatusOK || got != host):
			t.Errorf("%q: %d, the dependency got %q", host, w.Code, got)
		case !ok && (w.Code != http.StatusBadRequest || got != "nothing" || !strings.Contains(w.Body.String(), "bad-host")):
			t.Errorf("%q: %d %s, the dependency got %q", host, w.Code, w.Body, got)
		}
	}
}

// What a dependency says under the gateway's own names does not reach callers as the
// gateway's word, on any kind of route.
func TestDependencysForbearStopIsItsOwn(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(gateway.HeaderStop, "budget")
		w.Header().Set(gateway.HeaderAttempts, "9")
		w.Header().Set("X-Other", "yes")
	}))
	t.Cleanup(up.Close)
	target, _ := url.Parse(up.URL)
	retryer := forbear.Must(forbear.New("d", forbear.Policy{}, forbear.WithoutLog()))
	g, err := gateway.New(gateway.Config{Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{
		{Prefix: "/plain", Target: target, Retryer: retryer},
		{Prefix: "/keyed", Target: target, Retryer: retryer, Ingress: &gateway.Ingress{Store: &memstore.Idempotency{}, Options: idempotency.Options{Scope: idempotency.SingleTenant()}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/plain", "/keyed", "/keyed"} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", ingressKey)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if h := w.Header(); w.Code != http.StatusOK || h.Get("X-Other") != "yes" || h.Get(gateway.HeaderStop) != "" || h.Get(gateway.HeaderAttempts) != "" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
	}
}
