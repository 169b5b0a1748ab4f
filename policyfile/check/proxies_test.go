package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// verdict is what a reading comes to: each load with its attempts and its longest
// call as the table has them, and the findings that are no FC002.
func verdict(read *Reading) string {
	result := Run(read.Sources, Options{Now: today})
	var out []string
	for i := range result.Loads {
		l := &result.Loads[i]
		out = append(out, fmt.Sprintf("%s %s%d %s", l.Dependency, atLeast(l.AtLeast), l.Attempts, l.duration()))
	}
	var ids []string
	for _, f := range result.Findings {
		if f.ID != "FC002" {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	out = append(out, strings.Join(ids, " "))
	return strings.Join(out, "; ")
}

// read reads a text as one file of that name.
func readText(name, text string) *Reading { return ReadAll([]Input{{Name: name, Data: []byte(text)}}) }

func TestNginx(t *testing.T) {
	const three = "upstream a { server 10.0.0.1; server 10.0.0.2:80; server unix:/run/a; keepalive 0; }\n"
	const limited = "_next_upstream_timeout 10s; "
	in := func(directives string) string { return three + "server { location / { " + directives + " } }" }
	for _, tt := range []struct{ name, text, want string }{
		{"defaults", in("proxy_pass http://a;"), "a 3 3m0s; FC209"},
		{"grpc", in("grpc_pass grpcs://a; grpc_read_timeout 5s;"), "a 3 15s; FC209 FC601"},
		{"grpc verified", in("grpc_pass grpcs://a; grpc_ssl_verify on; grpc" + limited + "grpc_read_timeout 2s;"), "a 3 6s; "},
		{"fastcgi", in("fastcgi_pass a; fastcgi_next_upstream error http_404 non_idempotent; fastcgi_next_upstream_tries 2;"), "a 2 2m0s; FC209 FC301 FC306"},
		{"uwsgi", in("uwsgi_pass suwsgi://a; uwsgi_next_upstream off;"), "a 1 1m0s; FC601"},
		{"scgi", in("scgi_pass a; scgi" + limited + "scgi_read_timeout 9s;"), "a 3 19s; FC208"},
		{"memcached", in("memcached_pass a; memcached_next_upstream not_found; memcached" + limited + "memcached_read_timeout 1s;"), "a 3 3s; FC306"},
		{"in capitals", "upstream Pay { server 10.0.0.1; server 10.0.0.2; keepalive 0; } server { location / { proxy_pass HTTPS://pay; } }", "pay 2 2m0s; FC209 FC601"},
		{"connections that are kept", "upstream a { server 10.0.0.1; keepalive 8; } server { proxy_next_upstream_tries 1; location / { proxy_pass http://a; } location /b { proxy_next_upstream timeout; proxy_pass http://a; } }", "a >= 1 >= 1m0s; a 1 1m0s; FC001"},
		{"of another module", in("proxy_pass http://a; fastcgi_next_upstream off;"), "a 3 3m0s; FC209"},
		{"stream", "stream { " + three + "server { listen 1; proxy_pass a; } }", "a 3 3m0s; FC209"},
		{"stream off", "stream { " + three + "server { listen 1; proxy_next_upstream off; proxy_pass a; proxy_connect_timeout 1s; } }", "a 1 1s; "},
		{"stream of datagrams", "stream { " + three + "server { listen 1 udp; proxy_pass a; } }", "a 1 1m0s; "},
		{"stream in a file of its own", three + "server { listen 1; proxy_pass a; proxy_connect_timeout 2s; }", "a 3 6s; FC209"},
		{"stream with TLS", "stream { " + three + "server { listen 1; proxy_pass a; proxy_ssl on; proxy_next_upstream off; } }", "a 1 1m0s; FC601"},
		{"one address", "server { location / { proxy_pass http://10.0.0.1:80/x; } }", "10.0.0.1:80 1 1m0s; "},
		{"a socket", "server { location / { fastcgi_pass unix:/run/php.sock; } }", "unix:/run/php.sock 1 1m0s; "},
		{"a name", "server { location / { proxy_pass http://b:80; } }", "b:80 >= 1 >= 1m0s; FC001"},
		{"a name with a limit", "server { location / { proxy_next_upstream_tries 2; proxy_pass http://b; } }", "b 2 2m0s; FC209"},
		{"a name, off", "server { proxy_next_upstream off; location / { proxy_pass http://b; } }", "b 1 1m0s; "},
		{"no place passes to it", "upstream a { server b; server c; }", "FC001"},
		{"names", "upstream a { server b; server c; keepalive 0; } server { location / { proxy_pass http://a; proxy" + limited + "} }", "a >= 2 1m10s; FC001 FC207"},
		{"a variable", "server { location / { set $b http://b:80; proxy_pass $b; } }", "b:80 >= 1 >= 1m0s; FC001"},
		{"a variable that is an upstream", three + "server { set $b a; location / { proxy_pass http://$b; } }", "a 3 3m0s; FC209"},
		{"variables", three + "server { location / { set $p http; set $b a; set $c ${b}; proxy_pass $p://$c; } }", "a 3 3m0s; FC209"},
		{"a variable with a condition", three + "server { set $b a; if ($arg_x) { set $b c; } location / { proxy_pass http://$b; } }", "$b >= 1 >= 1m0s; FC001"},
		{"a variable behind the host", three + "server { location / { proxy_pass http://a$request_uri; } location /b { proxy_pass http://10.0.0.9:80${uri}$is_args$args; } }", "a 3 3m0s; 10.0.0.9:80 1 1m0s; FC209"},
		{"words that may have an effect", "server { location / { proxy_next_upstream error http_404 non_idempotent; proxy_pass http://b; } }", "b >= 1 >= 1m0s; FC001 FC001 FC001"},
		{"a variable of the request", "server { location / { proxy_pass http://$arg_b; } }", "$arg_b >= 1 >= 1m0s; FC001"},
		{"down and backup", "upstream a { server 10.0.0.1; server 10.0.0.2 down; server 10.0.0.3 backup max_fails=0; least_conn; keepalive 0; }\nserver { location / { proxy_pass http://a; } }", "a 2 2m0s; FC209"},
		{"Lua", "upstream a { server 0.0.0.1; keepalive 0; balancer_by_lua_block { local s = '}' -- don't {\n } }\nserver { location / { proxy_pass http://a; } }", "a >= 1 >= 1m0s; FC001"},
		{"empty", "upstream a { zone z 64k; keepalive 0; }\nserver { location / { proxy_pass http://a; } }", "a >= 1 >= 1m0s; FC001"},
		{"variables of a template", in("proxy_pass http://a; proxy_next_upstream_tries ${TRIES}; proxy_next_upstream_timeout ${TOTAL}; proxy_read_timeout {{ read }};"), "a 3 3m0s; FC001 FC001"},
		{"writes do not arrive", in("limit_except GET { deny all; } proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s;"), "a 3 3s; "},
		{"writes that a limit names arrive", in("limit_except GET POST { deny all; } proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s;"), "a 3 3s; FC301"},
		{"writes arrive within", in("limit_except GET { deny all; } if ($request_method = POST) { return 405; } location /b { proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s; }"), "a 3 3s; FC301"},
		{"writes do not arrive in a condition", in("limit_except GET { deny all; } if ($arg_b) { proxy_pass http://a; } proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s;"), "a 3 3s; "},
		{"writes may not arrive at a server", three + "server { if ($request_method = POST) { return 405; } location / { location /b { proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s; } } }", "a 3 3s; FC001"},
		{"writes may not arrive", in("if ($request_method !~ ^(GET|HEAD)$) { return 405; } proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s;"), "a 3 3s; FC001"},
		{"a header for POST", in("if ($request_method = 'POST') { add_header A b; } proxy_pass http://a; proxy_next_upstream error non_idempotent; proxy" + limited + "proxy_read_timeout 1s;"), "a 3 3s; FC301"},
		{"an error page", three + "server { error_page 502 504 = /b; location / { proxy_next_upstream off; proxy_pass http://a; } location @b { proxy_pass http://10.0.0.9; } }", "a 1 1m0s; 10.0.0.9 1 1m0s; "},
		{"places that retry nothing", three + "server { location / { proxy_next_upstream off; proxy_pass http://a; } location /b { proxy_next_upstream off; proxy_pass http://a; } }", "a 1 1m0s; "},
		{"equal places", three + "server { location /a { proxy_pass http://a; } location /b { proxy_pass http://a/x; } location /c { proxy_pass http://a; proxy_next_upstream off; } }", "a 3 3m0s; a 1 1m0s; FC209"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := readText("a.conf", tt.text)
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			if got := verdict(read); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// What nginx includes is read in the place that includes it, and not again.
func TestNginxIncludes(t *testing.T) {
	const up, site = "upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; }\n", "server { location / { include snippets/off.conf; proxy_pass http://a; } }\n"
	for _, tt := range []struct {
		name  string
		files []string // name, text, ...
		want  string
	}{
		{"settings", []string{"n/conf.d/site.conf", site, "n/nginx.conf", "events {} http { include /etc/nginx/conf.d/*.conf; " + up + "}", "n/snippets/off.conf", "proxy_next_upstream off;"}, "a 1 1m0s; "},
		{"without a mark of nginx", []string{"n/nginx.conf", "http { include time.inc; include conf.d/up; server { location / { proxy_pass http://a; } } }", "n/time.inc", "proxy_read_timeout 5s;", "n/conf.d/up", up}, "a 2 10s; FC209"},
		{"beside the file", []string{"etc/sites-enabled/site", "server { location / { include off; proxy_pass http://a; } }" + up, "etc/sites-enabled/off", "proxy_next_upstream off;"}, "a 1 1m0s; "},
		{"in a circle", []string{"n/a.conf", "include b.conf;" + site + up, "n/b.conf", "include a.conf; proxy_next_upstream off;", "n/snippets/off.conf", "include off.conf; include ../b.conf;"}, "a 1 1m0s; "},
		{"of another project", []string{"p/nginx.conf", "http { include conf.d/*.conf; }", "q/conf.d/a.conf", up + "server { location / { proxy_pass http://a; } }"}, "a 2 2m0s; FC001 FC209"},
		{"upstream elsewhere", []string{"n/a.conf", up, "n/b.conf", "server { location / { proxy_pass http://a; } }"}, "a 2 2m0s; FC209"},
		{"upstream in one of several", []string{"n/a.conf", up, "n/c.conf", up, "n/b.conf", "server { location / { proxy_pass http://a; } }"}, "a >= 1 >= 1m0s; FC001"},
		{"in a ConfigMap", []string{"c.yaml", "kind: ConfigMap\napiVersion: v1\ndata:\n  nginx.conf: |\n    events {}\n    http {\n      proxy_next_upstream off;\n      include /etc/nginx/conf.d/*.conf;\n    }\n  default.conf: |\n    upstream a { server 10.0.0.1; server 10.0.0.2; }\n    server { location / { proxy_pass http://a; } }\n"}, "a 1 1m0s; "},
		{"in a dump", []string{"dump.conf", "# configuration file /etc/nginx/nginx.conf:\nevents {}\nhttp { include /etc/nginx/mime.types; proxy_next_upstream off; include conf.d/*.conf; }\n\n# configuration file /etc/nginx/conf.d/a.conf:\n" + up + "server { location / { proxy_pass http://a; } }\n"}, "a 1 1m0s; "},
		{"types", []string{"nginx.conf", "http { include mime.types; include /etc/nginx/fastcgi_params; server { location / { proxy_pass http://10.0.0.1; } } }"}, "10.0.0.1 1 1m0s; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var inputs []Input
			for i := 0; i < len(tt.files); i += 2 {
				inputs = append(inputs, Input{Name: tt.files[i], Data: []byte(tt.files[i+1])})
			}
			read := ReadAll(inputs)
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			if got := verdict(read); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Files that nginx includes are read from beside the file that is judged, and from
// nowhere else.
func TestNginxIncludesOnDisk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"n/nginx.conf":          "events {} http { include /etc/nginx/conf.d/*.conf; include ../out.conf; include snippets/link.conf; include *.conf; }",
		"n/conf.d/a.conf":       "include snippets/off.conf; upstream a { server 10.0.0.1; server 10.0.0.2; } server { location / { proxy_pass http://a; } }",
		"n/snippets/off.conf":   "proxy_next_upstream off; include conf.d/a.conf;",
		"n/other.conf":          "proxy_pass http://b;",
		"out.conf":              "proxy_next_upstream error http_404;",
		"n/snippets/ignore.txt": "no configuration",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "out.conf"), filepath.Join(dir, "n/snippets/link.conf")); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "n", "nginx.conf")
	data, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in   Input
		want string
	}{
		{Input{Name: main, Data: data, Beside: true}, "a 1 1m0s; FC001 FC001 FC001"},
		{Input{Name: main, Data: data}, "FC001 FC001 FC001 FC001"},
	} {
		read := ReadAll([]Input{tt.in})
		if err := read.Err(); err != nil {
			t.Fatal(err)
		}
		if got := verdict(read); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// A wait comes before a retry, and not before the first attempt; and what begins within a
// duration that bounds the tries goes on beyond it.
func TestLongestCalls(t *testing.T) {
	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [{matches: [{method: GET}], backendRefs: [{name: a}], retry: {attempts: 2, backoff: 1s}, timeouts: {request: 20s, backendRequest: 3s}}]}\n"
	for _, tt := range []struct{ name, file, text, want string }{
		{"Gateway API", "r.yaml", route, "a 3 11s; "},
		{"a canary alone", "i.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, annotations: {nginx.ingress.kubernetes.io/canary: 'true'}}\nspec: {defaultBackend: {service: {name: a}}}\n", "a >= 1 >= 1m0s; FC001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := readText(tt.file, tt.text)
			if got := verdict(read); read.Err() != nil || got != tt.want {
				t.Errorf("got %s, %v, want %s", got, read.Err(), tt.want)
			}
		})
	}
}

// A proxy in front of a name may retry, and is not known to: that is no finding
// about two layers, and no bound either.
func TestLayerThatMayRetry(t *testing.T) {
	read := ReadAll([]Input{
		{Name: "policy.yaml", Data: []byte("service: a\ndependencies: {b: {owner: a, methods: [GET], strict: true}}\n")},
		{Name: "nginx.conf", Data: []byte("server { location / { proxy_pass http://b; } }\n")},
	})
	if got, want := verdict(read), "b >= 4 27s; b >= 1 >= 1m0s; FC001"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An attempt that hangs is not retried where only failed connections are: their own
// time-out decides on whether there is time for another.
func TestConnections(t *testing.T) {
	const (
		route = "virtual_hosts: [{name: v, domains: ['*'], request_headers_to_remove: [x-envoy-max-retries], routes: [{match: {prefix: /}, route: {cluster: a, timeout: 6s, retry_policy: {retry_on: 'WORDS', num_retries: 2}}}]}]\nclusters: [{name: a, connect_timeout: 1s, circuit_breakers: {thresholds: [{retry_budget: {}}]}}]\n"
		mesh  = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {hosts: [a], http: [{timeout: 12s, route: [{destination: {host: a}}], retries: {attempts: 2, retryOn: 'WORDS'}}]}\n---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {retryBudget: {percent: 20}}}\n"
	)
	for _, tt := range []struct{ name, text, words, want string }{
		{"Envoy", route, "connect-failure,refused-stream", "a 3 6s; "},
		{"Envoy's requests", route, "connect-failure,reset", "a 3 6s; FC207 FC301"},
		{"a time-out as long as the call", strings.Replace(route, "1s", "6s", 1), "connect-failure", "a 3 6s; FC207"},
		{"no time-out of its own", strings.Replace(route, "connect_timeout: 1s", "type: EDS", 1), "connect-failure", "a 3 6s; "},
		{"no time-out of its own, which is five seconds", strings.Replace(strings.Replace(route, "connect_timeout: 1s", "type: EDS", 1), "6s", "5s", 1), "connect-failure", "a 3 5s; FC207"},
		{"Istio", mesh, "connect-failure,refused-stream", "a 3 12s; "},
		{"Istio's requests", mesh, "connect-failure,503", "a 3 12s; FC207 FC301"},
		{"Istio's default of ten seconds", strings.Replace(mesh, "12s", "10s", 1), "connect-failure", "a 3 10s; FC207"},
		{"Istio's rule", strings.Replace(strings.Replace(mesh, "12s", "10s", 1), "{retryBudget", "{connectionPool: {tcp: {connectTimeout: 2s}}, retryBudget", 1), "connect-failure", "a 3 10s; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := readText("a.yaml", strings.Replace(tt.text, "WORDS", tt.words, 1))
			if err := read.Err(); err != nil {
				t.Fatal(err)
			}
			if got := verdict(read); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
