package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway"
)

// guarded is a gateway with a route that adds credentials of its own, one that a
// host names, and one that passes on what callers bring. spent counts the requests
// that went out with the gateway's credentials.
func guarded(t *testing.T, loopback bool) (address string, spent *atomic.Int64) {
	t.Helper()
	spent = &atomic.Int64{}
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer own" {
			spent.Add(1)
		}
	}))
	t.Cleanup(up.Close)
	target, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	own := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		return credential.Token{Value: "Bearer own"}, nil
	}))
	g, err := gateway.New(gateway.Config{
		Logger: slog.New(slog.DiscardHandler),
		Routes: []gateway.Route{
			{Prefix: "/own", Target: target, Retryer: retryer, Credentials: own},
			{Host: "payments.internal", Target: target, Retryer: retryer, Credentials: own},
			{Host: "search.internal", Target: target, Retryer: retryer},
			{Prefix: "/callers", Target: target, Retryer: retryer},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback {
			ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}))
			r = r.WithContext(ctx)
		}
		g.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.Listener.Addr().String(), spent
}

// No page in a browser spends the gateway's credentials, by whatever method and by
// whatever name it reaches the gateway; programs, which send neither Origin nor
// Sec-Fetch-Site, do as before.
func TestGuardOfOwnCredentials(t *testing.T) {
	for _, tt := range []struct {
		name     string
		loopback bool
		method   string
		host     string // "" is the address
		path     string
		headers  string // of a browser: "Origin: ..., Sec-Fetch-Site: ..."
		want     int
		kind     string
	}{
		{"a program", true, "GET", "", "/own/a", "", 200, ""},
		{"a program that writes", true, "POST", "", "/own/a", "", 200, ""},
		{"by the name of this machine", true, "GET", "localhost:80", "/own/a", "", 200, ""},
		{"by the host of a route", true, "GET", "payments.internal", "/own/a", "", 200, ""},
		{"by the host of another route, with a port", true, "GET", "search.internal:8080", "/own/a", "", 200, ""},
		{"by its own host, in capitals", true, "GET", "Payments.Internal:8080", "/a", "", 200, ""},
		{"a name that was rebound", true, "GET", "evil.example", "/own/a", "", 403, "host"},
		{"a name that was rebound, writing", true, "POST", "evil.example:8080", "/own/a", "Origin: http://evil.example:8080, Sec-Fetch-Site: same-origin", 403, "host"},
		{"no name", true, "GET", "-", "/own/a", "", 403, "host"},
		{"a page that writes", true, "POST", "", "/own/a", "Origin: https://evil.example, Sec-Fetch-Site: cross-site", 403, "cross-origin"},
		{"a page that reads", true, "GET", "", "/own/a", "Sec-Fetch-Site: cross-site", 403, "cross-origin"},
		{"a page of a neighbor that reads", true, "HEAD", "", "/own/a", "Sec-Fetch-Site: same-site", 403, "cross-origin"},
		{"a page that asks beforehand", true, "OPTIONS", "", "/own/a", "Origin: https://evil.example", 403, "cross-origin"},
		{"an old browser's page that writes", true, "POST", "", "/own/a", "Origin: https://evil.example", 403, "cross-origin"},
		{"a sandbox that writes", true, "DELETE", "", "/own/a", "Origin: null", 403, "cross-origin"},
		{"a person who typed the address", true, "GET", "", "/own/a", "Sec-Fetch-Site: none", 200, ""},
		{"a page of the dependency itself", true, "POST", "", "/own/a", "Sec-Fetch-Site: same-origin", 200, ""},
		{"a page, by the host of a route", true, "POST", "payments.internal", "/a", "Origin: https://evil.example, Sec-Fetch-Site: cross-site", 403, "cross-origin"},
		{"a page, without credentials of the gateway's", true, "POST", "", "/callers/a", "Origin: https://evil.example, Sec-Fetch-Site: cross-site", 200, ""},
		{"any name, without credentials of the gateway's", true, "GET", "evil.example", "/callers/a", "", 200, ""},
		{"health, by any name", true, "GET", "evil.example", "/health/live", "", 200, ""},
		{"beyond loopback, by any name", false, "GET", "gateway.example", "/own/a", "", 200, ""},
		{"beyond loopback, a page that writes", false, "POST", "gateway.example", "/own/a", "Sec-Fetch-Site: cross-site", 403, "cross-origin"},
		{"beyond loopback, a page that reads", false, "GET", "gateway.example", "/own/a", "Sec-Fetch-Site: cross-site", 403, "cross-origin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address, spent := guarded(t, tt.loopback)
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			host := tt.host
			switch host {
			case "":
				host = address
			case "-":
				host = ""
			}
			var req strings.Builder
			req.WriteString(tt.method + " " + tt.path + " HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n")
			for h := range strings.SplitSeq(tt.headers, ", ") {
				if h != "" {
					req.WriteString(h + "\r\n")
				}
			}
			if _, err := conn.Write([]byte(req.String() + "Idempotency-Key: k\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("got %d, want %d", resp.StatusCode, tt.want)
			}
			if refused := tt.want == 403; refused && spent.Load() != 0 {
				t.Error("the gateway's credentials were spent")
			}
			if tt.kind == "" || tt.method == "HEAD" {
				return
			}
			var p struct {
				Type string `json:"type"`
				ID   string `json:"correlation_id"`
			}
			if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Type != "urn:forbear:problem:"+tt.kind || p.ID == "" {
				t.Errorf("got the problem %+v, %v; want %s", p, err, tt.kind)
			}
		})
	}
}
