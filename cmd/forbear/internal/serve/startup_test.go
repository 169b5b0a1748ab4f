package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// What serve refuses to start with, check finds, as far as the file tells; and
// both say the same of it.
func TestCheckFindsWhatServeRefuses(t *testing.T) {
	t.Setenv("FORBEAR_DATABASE", "")
	t.Chdir(t.TempDir())
	file := func(dependency, gateway string) string {
		return "service: s\ndependencies:\n  a: {owner: s, idempotency: refuse, " + dependency + "}\ngateway:\n" + gateway
	}
	const listen, web = "  listen: 127.0.0.1:0\n", "url: http://127.0.0.1:9"
	route := func(prefix, more string) string {
		return listen + "  trusted_proxies: [127.0.0.1]\n  routes:\n    - {prefix: " + prefix + ", dependency: a" + more + "}\n"
	}
	for name, tt := range map[string]struct{ text, want string }{
		"no routes":                     {file(web, listen), "it has no gateway.routes, so there is nothing to serve"},
		"the delivery API":              {file(web, route("/v1", ", idempotency: on")), "the route /v1 is where the delivery API is"},
		"below the delivery API":        {file(web, route("/v1/a", ", idempotency: on")), "the route /v1/a is where the delivery API is"},
		"grpc without HTTP/2":           {file(web+", kind: grpc, http2: off", route("/a", "")), "has kind grpc, which needs HTTP/2"},
		"no url":                        {file("kind: sync", route("/a", "")), "has no url"},
		"a port without a host":         {file("url: 'http://:/v1'", route("/a", "")), "url is not an http or https address"},
		"a durable kind":                {file(web+", kind: webhook", route("/a", "")), "which is delivered and cannot be forwarded"},
		"keys and credentials":          {file(web+", credentials: {secret: {file: s}}", route("/a", ", idempotency: on")), "drop the credentials of dependency a"},
		"the gateway's own":             {file(web, route("/health/x", "")), "is reserved for the gateway"},
		"an unclean path":               {file(web, route("/a/../b", "")), "want a clean path"},
		"no such dependency":            {file(web, strings.Replace(route("/a", ""), "dependency: a", "dependency: b", 1)), "is not in this file"},
		"two of a prefix":               {file(web, route("/a", "")+"    - {prefix: /a/, dependency: a}\n"), "a second route for /a"},
		"no port":                       {file(web, strings.Replace(route("/a", ""), "127.0.0.1:0", "127.0.0.1:99999", 1)), "gateway.listen is"},
		"a host with a port":            {file(web, strings.Replace(route("/a", ""), "prefix: /a", "host: 'a.internal:80'", 1)), "want a host name without a port"},
		"a token in clear":              {file(web+", credentials: {token_url: http://auth.internal/t, client_id: c, client_secret: {file: s}}", route("/a", "")), "is not https"},
		"too many retries":              {file(web+", max_retries: 9", route("/a", "")), "max_retries 9 is outside 1-5"},
		"a retention that is too short": {file(web, route("/a", ", idempotency: {retention: 1h}")), "idempotency.retention 1h is under 24h"},
	} {
		t.Run(name, func(t *testing.T) {
			path := clitest.File(t, "policy.yaml", tt.text)
			served := clitest.Run(t, Command(), "", "--config", path, "--admin", "off")
			if served.Code != cli.ExitUsage || !strings.Contains(served.Errors, tt.want) || !strings.HasPrefix(served.Errors, path+":") {
				t.Errorf("serve: %+v, want %s", served, tt.want)
			}
			checked := clitest.Run(t, check.Command(), "", path)
			if checked.Code == cli.ExitOK || !strings.Contains(checked.Out+checked.Errors, tt.want) {
				t.Errorf("check: %+v, want %s", checked, tt.want)
			}
		})
	}
	// What check passes with not so much as a note on the gateway, serve starts with.
	for name, text := range map[string]string{
		"plain":             file(web, route("/a", "")),
		"keys":              file(web, route("/a", ", idempotency: on")),
		"credentials":       file(web+", credentials: {secret: {file: s}}", route("/a", "")),
		"grpc over TLS":     file("kind: grpc, url: https://127.0.0.1:9", route("/a", "")),
		"nearly the API's":  file(web, route("/v10", ", idempotency: on")),
		"no deliveries":     file(web, route("/v1", "")),
		"a host and health": file(web+", health: {endpoint: http://127.0.0.1:9/ready, interval: 1h}", route("/a", "")+"    - {host: a.internal, dependency: a}\n"),
	} {
		path := clitest.File(t, "policy.yaml", text)
		if checked := clitest.Run(t, check.Command(), "", path); checked.Code != cli.ExitOK {
			t.Errorf("%s: check: %+v", name, checked)
		}
		t.Chdir(t.TempDir())
		s := startServe(t, "--config", path, "--admin", "off")
		if code := s.stop(); code != 0 {
			t.Errorf("%s: serve: %s", name, s.log)
		}
	}
}

// A header that names the principal is believed from the proxies that the file
// names, by their address, and from no other peer; a reload can change that.
func TestServeTrustedProxies(t *testing.T) {
	_, url := newLedger(t)
	policy := func(proxies string) string {
		return strings.Replace(ingressPolicy(url, "on"), "gateway:\n", "gateway:\n  trusted_proxies: ["+proxies+"]\n", 1)
	}
	for _, tt := range []struct {
		name, proxies string
		want          int
	}{
		{"none named", "", 201},
		{"this peer", "127.0.0.0/8", 201},
		{"this peer, among others", "10.0.0.0/8, 127.0.0.1", 201},
		{"another", "10.0.0.0/8", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startServe(t, "--config", clitest.File(t, "policy.yaml", policy(tt.proxies)), "--database", t.TempDir()+"/forbear.db", "--no-delivery", "--admin", "off")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/pay/book", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Idempotency-Key": "k", "X-Principal": "ann", "X-Forwarded-For": "127.0.0.1", "X-Correlation-ID": "c-1"} {
				req.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want || resp.Header.Get("X-Correlation-ID") != "c-1" {
				t.Errorf("got %d %v, want %d", resp.StatusCode, resp.Header, tt.want)
			}
		})
	}
}
