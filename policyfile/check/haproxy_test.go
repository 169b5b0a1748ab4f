package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

func TestHAProxy(t *testing.T) {
	const head = "defaults\n  mode http\n  timeout connect 2s\n  timeout server 5s\n"
	backend := func(lines string) string { return head + "backend a\n  server s 10.0.0.1:80\n" + lines }
	on := func(lines string) string { return backend("  retry-on 503\n  retries 1\n" + lines) }
	for _, tt := range []struct{ name, text, want string }{
		// Three connections with their waits, and one that has a response.
		{"defaults", backend(""), "a 4 16s; "},
		{"responses", on("  http-request disable-l7-retry"), "a 2 14s; "},
		{"all", backend("  retry-on all-retryable-errors\n"), "a 4 28s; FC301"},
		{"connections", backend("  retry-on conn-failure 0rtt-rejected\n"), "a 4 16s; "},
		{"none", backend("  retry-on none\n"), "a 1 7s; "},
		{"no retries", backend("  retries 0\n  retry-on 404 503\n"), "a 1 7s; "},
		{"terminal", on("  http-request disable-l7-retry\n  retry-on 401 503\n"), "a 2 14s; FC306"},
		{"TCP", "defaults\n  timeout connect 2s\n  retry-on 503\n  mode tcp\nlisten a\n  server s 10.0.0.1:80\n", "a 4 11s; "},
		{"TCP by default", "defaults\n  timeout connect 2s\nlisten a\n  server s 10.0.0.1:80\n", "a 4 11s; "},
		{"no time-out", "defaults\n  mode http\nbackend a\n  server s 10.0.0.1:80\n", "a 4 unbounded; "},
		{"a time-out of the environment", head + "  timeout server \"${T}\"\nbackend a\n  server s 10.0.0.1:80\n", "a 4 unbounded; FC001"},
		{"retries of the environment", backend("  retries \"${RETRIES}\"\n  retry-on 404 503\n"), "a >= 1 >= 7s; FC001 FC301 FC306"},
		{"retries of a template", backend("  retries {{ retries }}\n"), "a >= 1 >= 7s; FC001"},
		{"a template", head + "backend {{ name }}\n  server-template s 1-3 a:80\n", "{{ name }} 4 16s; "},

		{"POST alone", on("  http-request disable-l7-retry if METH_POST\n"), "a 2 14s; FC301"},
		{"both", on("  http-request disable-l7-retry if { method POST PATCH }\n"), "a 2 14s; "},
		{"two lines", on("  http-request disable-l7-retry if METH_POST\n  http-request disable-l7-retry if { method -i patch }\n"), "a 2 14s; "},
		{"a name", on("  acl is_write method POST\n  acl is_write method PUT PATCH\n  http-request disable-l7-retry if is_write\n"), "a 2 14s; "},
		{"not GET", on("  http-request disable-l7-retry if !METH_GET\n"), "a 2 14s; "},
		{"unless", on("  http-request disable-l7-retry unless { method GET HEAD }\n"), "a 2 14s; "},
		{"unless it may be", on("  http-request disable-l7-retry unless { method GET } or { path_beg /api }\n"), "a 2 14s; FC301"},
		{"either", on("  http-request disable-l7-retry if { path /a } || METH_POST or { method PATCH }\n"), "a 2 14s; "},
		{"at a path", on("  http-request disable-l7-retry if { path_beg /api } { method POST PATCH }\n"), "a 2 14s; FC301"},
		{"without a key", on("  http-request disable-l7-retry if { method POST PATCH } !{ req.hdr(Idempotency-Key) -m found }\n"), "a 2 14s; "},
		{"with a key", on("  http-request disable-l7-retry if { method POST PATCH } { req.hdr(Idempotency-Key) -m found }\n"), "a 2 14s; FC301"},
		{"by a pattern", on("  http-request disable-l7-retry if { method -m reg ^P(OST|ATCH)$ }\n"), "a 2 14s; "},
		{"by a pattern in any case", on("  http-request allow if { method -i -m reg ^p(ost|atch)$ }\n  http-request disable-l7-retry\n"), "a 2 14s; FC301"},
		{"retries of a rule", on("  http-request disable-l7-retry\n  http-request set-retries 9 if { path /a }\n"), "a >= 2 >= 14s; FC001"},
		{"retries of a connection's rule", on("  http-request disable-l7-retry\n  tcp-request content set-retries 9\n"), "a >= 2 >= 14s; FC001"},
		{"retries of a frontend's rule", on("  http-request disable-l7-retry\nfrontend f\n  http-request set-retries 9\n  http-request set-retries 0\n"), "a >= 2 >= 14s; FC001"},
		{"retries of an expression", on("  http-request disable-l7-retry\n  http-request set-retries var(txn.n)\n"), "a >= 2 >= 14s; FC001"},
		{"a rule that sets retries is no guard", on("  http-request set-retries 9\n"), "a >= 2 >= 14s; FC001 FC301"},
		{"no retries of writes", on("  http-request set-retries 0 if { method POST PATCH }\n"), "a 2 14s; "},
		{"retries of writes again", on("  http-request set-retries 0 if { method POST PATCH }\n  http-request set-retries 1 if { path /a }\n"), "a >= 2 >= 14s; FC001"},
		{"retries in a condition of the file", backend(".if defined(X)\n  retries 9\n.else\n  retries 1\n.endif\n"), "a >= 2 >= 10s; FC001"},
		{"retries in a template's condition", backend("{% if x %}\n  retry-on none\n{%- endif %}\n"), "a >= 1 >= 7s; FC001"},
		{"retries behind such a condition", backend(".if defined(X)\n  balance source\n.endif\n  retries 1\n"), "a 2 10s; "},
		{"refused", on("  http-request deny deny_status 405 unless METH_GET\n"), "a 2 14s; "},
		{"let through before", on("  http-request allow if { src 10.0.0.0/8 }\n  http-request deny unless METH_GET\n"), "a 2 14s; FC301"},
		{"in a frontend", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend a\n"), "a 2 14s; "},
		{"in all frontends", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend a\nfrontend g\n  acl w method POST PATCH\n  http-request deny if w\n  use_backend %[path]\n"), "a 2 14s; "},
		{"in one of two frontends", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend a\nfrontend g\n  use_backend a if { path /a }\n"), "a 2 14s; FC301"},
		{"in one of two frontends, of which one computes its backend", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend a\nfrontend g\n  use_backend %[path]\n"), "a 2 14s; FC301"},
		{"in one of a frontend and a section that is both", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend a\nlisten l\n  use_backend a\n"), "a 2 14s; FC301"},
		{"in a frontend, under a condition of the file", on("frontend f\n.if defined(X)\n  http-request disable-l7-retry if { method POST PATCH }\n.endif\n  default_backend a\n"), "a >= 2 >= 14s; FC001 FC301"},
		{"in the frontend of another backend", on("frontend f\n  http-request disable-l7-retry if { method POST PATCH }\n  default_backend b\n"), "a 2 14s; FC301"},
		{"by the defaults of a frontend", "defaults g\n  mode http\n  http-request disable-l7-retry if { method POST PATCH }\n" + on("frontend f from g\n  default_backend a\n"), "a 2 14s; "},
		{"methods that have to hold at once", on("  http-request disable-l7-retry if METH_POST METH_PUT\n"), "a 2 14s; FC301"},
		{"a name that HAProxy does not have", on("  http-request disable-l7-retry if METH_POST || METH_PATCH\n"), "a 2 14s; FC301"},

		{"named defaults", "defaults d\n  mode http\n  timeout connect 2s\n  timeout server 5s\n  retries 1\n  retry-on 503\n  acl w method POST PATCH\n  http-request disable-l7-retry if w\ndefaults\n  mode tcp\nbackend a from d\n  server s 10.0.0.1:80\n", "a 2 14s; "},
		{"defaults from others", "defaults d\n  mode http\n  timeout connect 2s\n  timeout server 5s\ndefaults e from d\n  retries 1\nbackend a\n  server s 10.0.0.1:80\n", "a 2 10s; "},
		{"new defaults", head + "  retries 9\ndefaults\n  timeout connect 1s\nbackend a\n  server s 10.0.0.1:80\n", "a 4 7s; "},
		{"no defaults", "backend a\n  server s 10.0.0.1:80\n", "a 4 unbounded; FC001"},

		{"verify none", backend("  server t 10.0.0.1:443 ssl verify none\n"), "a 4 16s; FC601"},
		{"verify of the environment", backend("  default-server ssl verify \"${VERIFY}\"\n  server t 10.0.0.1:443\n  server u 10.0.0.2:443\n"), "a 4 16s; FC001"},
		{"of health checks alone", backend("  server t 10.0.0.1:80 check-ssl verify none\n"), "a 4 16s; "},
		{"in all of the file", "global\n  ssl-server-verify none\n" + backend("  server t 10.0.0.1:443 ssl\n  server u 10.0.0.1:444 ssl\n"), "a 4 16s; FC601"},
		{"of HAProxy's own client", "global\n  httpclient.ssl.verify none\n" + backend(""), "a 4 16s; FC601"},
		{"but not here", "global\n  ssl-server-verify none\n" + backend("  server t 10.0.0.1:443 ssl verify required ca-file a.pem\n"), "a 4 16s; "},
		{"by the defaults", head + "  default-server ssl verify none\nbackend a\n  server s 10.0.0.1:443\n", "a 4 16s; FC601"},
		{"required by default", backend("  server t 10.0.0.1:443 ssl\n"), "a 4 16s; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := readText("haproxy.cfg", tt.text)
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			if got := verdict(read); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// HAProxy reads several files as one.
func TestHAProxyFiles(t *testing.T) {
	read := ReadAll([]Input{
		{Name: "10-a.cfg", Data: []byte("backend a\n  server s 10.0.0.1:80\n")},
		{Name: "00-defaults.cfg", Data: []byte("defaults\n  mode http\n  retries 1\n  timeout connect 1s\n  timeout server 1s\n")},
	})
	if got := verdict(read); read.Err() != nil || got != "a 2 4s; " {
		t.Errorf("got %s, %v", got, read.Err())
	}
	alone := ReadAll([]Input{{Name: "00-defaults.cfg", Data: []byte("defaults\n  retries 50\n")}})
	if got := verdict(alone); !strings.Contains(got, "FC001") {
		t.Errorf("of defaults alone got %q, want a note", got)
	}
}

// What is repeated without a response has no Retry-After to pass over.
func TestHAProxyPauses(t *testing.T) {
	for words, want := range map[string]bool{"conn-failure response-timeout": false, "404 500": false, "empty-response 503": true, "all-retryable-errors": true} {
		read := readText("haproxy.cfg", "defaults\n  mode http\nbackend a\n  server s 10.0.0.1:80\n  retry-on "+words+"\n")
		said := slices.ContainsFunc(Run(read.Sources, Options{Now: today}).Findings, func(f report.Finding) bool { return f.Standard == "R-5" })
		if said != want {
			t.Errorf("%s: a word about Retry-After: %v, want %v", words, said, want)
		}
	}
}
