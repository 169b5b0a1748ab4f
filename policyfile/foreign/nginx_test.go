package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// routesOf lists the dependencies of a text by name, service and route.
func routesOf(name, text string) (all []string) {
	for _, result := range Read(Open(name, []byte(text), "").Parts) {
		for _, d := range result.File.Dependencies {
			all = append(all, fmt.Sprintf("%s (%s) %s", d.Name, d.Service, d.Route))
		}
	}
	return all
}

// A route is the block whose directives hold: one more location with the same ones
// changes nothing that a baseline knows.
func TestNginxRoutes(t *testing.T) {
	const text = `
upstream a { server payments.shop.svc.cluster.local:80; server payments.shop.svc.cluster.local:81; }
upstream b { server 10.0.0.1; server 10.0.0.2; }
server {
  listen 80; server_name shop.example;
  location /a { proxy_pass http://a; }
  location /b { proxy_pass http://b; proxy_next_upstream_tries 2; }
  location ~ ^/c { proxy_read_timeout 5s; proxy_pass https://b; }
}
server {
  listen 81; server_name shop.example;
  proxy_next_upstream_tries 2;
  location /a { proxy_pass http://a; }
  location /b { grpc_pass grpc://b; }
}`
	want := []string{
		"a (payments.shop.svc.cluster.local) ",
		"b () shop.example 80 /b",
		"b () shop.example 80 ~ ^/c https",
		"a (payments.shop.svc.cluster.local) shop.example 81",
		"b () grpc",
	}
	if got := routesOf("a.conf", text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The number of files and of their includes does not keep a run from ending.
func TestManyNginxFiles(t *testing.T) {
	var parts []Part
	for i := range 2000 {
		name := fmt.Sprintf("a/b/c/d/e/site%d/nginx.conf", i)
		text := "include /etc/nginx/conf.d/*.conf; include x.conf; include y/*/z.conf; server { location / { proxy_pass http://10.0.0.1; } }"
		parts = append(parts, Open(name, []byte(text), "").Parts...)
	}
	if got := len(Wanted(parts)); got != 3*2000 {
		t.Errorf("%d includes", got)
	}
	if got := len(Read(parts)); got != 2000 {
		t.Errorf("%d files", got)
	}
}

// Columns count characters, as editors do.
func TestNginxColumns(t *testing.T) {
	for _, r := range Read(Open("n.conf", []byte("server { location /äöü { proxy_pass https://10.0.0.1; } }"), "").Parts) {
		if len(r.Refused) != 1 || r.Refused[0].Position.Column != 26 {
			t.Errorf("got %v, want column 26", r.Refused)
		}
	}
}

// A comment that looks like the mark of nginx -T takes nothing out of what is judged.
func TestMarkOfADump(t *testing.T) {
	const server = "upstream a { server b; server c; }\nserver { location / { proxy_pass http://a; proxy_next_upstream_tries 9; } }\n"
	for name, text := range map[string]string{
		"within a block": "events {}\nhttp {\n# configuration file more:\n" + server + "}\n",
		"below":          "http {\n" + server + "}\n# configuration file more:\nevents {}\n",
		"of a dump":      "nginx: test is successful\n# configuration file /etc/nginx.conf:\nevents {}\nhttp { include a.conf; }\n# configuration file /etc/a.conf:\n" + server,
	} {
		t.Run(name, func(t *testing.T) { holds(t, said("nginx.conf", text), []string{"R-2 max_retries"}, nil) })
	}
}

// A text within a file is read where it stands, and not moved there behind as many empty
// lines: thousands of texts in a dump would take the square of their number.
func TestTextsInPlace(t *testing.T) {
	const text = "      upstream u { server a; server b; }\n      server { location / { proxy_pass http://u; proxy_next_upstream_tries 9; } }\n"
	file := "kind: List\nitems:\n" + strings.Repeat("- kind: ConfigMap\n  data:\n    nginx.conf: |\n"+text, 100)
	opened := Open("a.yaml", []byte(file), "")
	length := 0
	for _, p := range opened.Parts {
		length += len(p.Text)
	}
	if length > len(file) {
		t.Errorf("%d bytes of texts in a file of %d", length, len(file))
	}
	results := Read(opened.Parts)
	for i, f := range results[0].Refused {
		if f.Field == "max_retries" && (f.Line-7)%5 != 0 || f.Line > 502 {
			t.Errorf("finding %d at %s: %s", i, f.Position, f.Message)
		}
	}
	if n := len(results[0].File.Dependencies); n != 100 {
		t.Errorf("%d units, want 100", n)
	}
}

// An include that was not read may hold what the file leaves to nginx.
func TestNginxUnread(t *testing.T) {
	const (
		up     = "upstream a { server 10.0.0.1; server 10.0.0.2; }\n"
		unless = ", unless an include that was not read says otherwise"
	)
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"beside", up + "server { include tls.conf; location / { proxy_pass https://a; } }", []string{"proxy_ssl_verify is off, the default" + unless + ": any", "proxy_next_upstream_timeout is 0, the default" + unless + ": nothing"}, nil},
		{"elsewhere", up + "server { location /b { include tls.conf; } location / { proxy_pass https://a; } }", []string{"proxy_ssl_verify is off, the default: any"}, []string{"unless"}},
		{"what the file says itself", up + "server { include tls.conf; location / { proxy_ssl_verify off; proxy_next_upstream_timeout 0; proxy_pass https://a; } }", []string{"proxy_ssl_verify is off: any"}, []string{"unless"}},
		{"in a table", "map $host $b { include hosts.map; default a; }\ngeo $g { include geo.conf; }\n" + up + "server { location / { proxy_pass http://a; } }", []string{"a [] x2"}, []string{"include"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("a.conf", tt.text), tt.want, tt.not) })
	}
}

// Connections are kept where the configuration says so, and in newer versions of nginx
// without a word.
func TestNginxKept(t *testing.T) {
	const (
		plain = "upstream a { server 10.0.0.1; }\n"
		some  = "upstream a { server 10.0.0.1; keepalive 8; }\n"
		late  = "note 2: since nginx 1.29.7 connections to a are kept"
		kept  = "note 2: connections to a are kept"
	)
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"without a word", plain + "server { location / { proxy_pass http://a; } }", []string{"a [] x1 at least", late}, nil},
		{"over HTTP/1.1 in all versions", some + "server { proxy_http_version 1.1; proxy_set_header Connection ''; location / { proxy_pass http://a; } }", []string{"a [] x1 at least", kept}, nil},
		{"the header is hidden", some + "server { proxy_http_version 1.1; proxy_set_header Connection ''; location / { proxy_set_header Host b; proxy_pass http://a; } }", []string{late}, nil},
		{"HTTP/1.0 before", some + "server { location / { proxy_pass http://a; } }", []string{late}, nil},
		{"HTTP/1.0", some + "server { location / { proxy_http_version 1.0; proxy_pass http://a; } }", []string{"a [] x1, "}, []string{"kept"}},
		{"closed", some + "server { proxy_set_header Connection close; location / { proxy_pass http://a; } }", []string{"a [] x1, "}, []string{"kept"}},
		{"none", "upstream a { server 10.0.0.1; keepalive 0; }\nserver { location / { proxy_pass http://a; } }", []string{"a [] x1, "}, []string{"kept"}},
		{"an address", "server { location / { proxy_pass http://10.0.0.1; } }", []string{"x1, "}, []string{"kept"}},
		{"a variable that may be an upstream", plain + "server { proxy_next_upstream_tries 2; location / { proxy_pass http://$pool; } }", []string{"$pool [] x2 at least"}, nil},
		{"a variable where there is none", "server { proxy_next_upstream_tries 2; location / { proxy_pass http://$pool; } }", []string{"$pool [] x2, "}, []string{"kept"}},
		{"gRPC", some + "server { location / { grpc_pass a; } }", []string{kept}, nil},
		{"FastCGI", some + "server { location / { fastcgi_keep_conn on; fastcgi_pass a; } location /b { fastcgi_pass a; } }", []string{kept, "x1, "}, nil},
		{"uwsgi", some + "server { location / { uwsgi_pass a; } }", []string{"a [] x1, "}, []string{"kept"}},
		{"not after errors", some + "server { proxy_next_upstream timeout; location / { proxy_pass http://a; } }", []string{"a [] x1, "}, []string{"kept"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("a.conf", tt.text), tt.want, tt.not) })
	}
}

// What a file sets for those that include it does not go by unsaid when they are not here.
func TestSetElsewhere(t *testing.T) {
	const snippet, note = "proxy_next_upstream_tries 50;\n", "note 1: proxy_next_upstream_tries applies where this file is included"
	holds(t, said("retries.conf", snippet), []string{note}, nil)
	holds(t, said("off.conf", "proxy_next_upstream off;\n"), nil, []string{"note"})
	opened := Open("nginx.conf", []byte("events {}\nhttp { include retries.conf; server { location / { proxy_pass http://a; } } }\n"), "")
	for _, f := range Read(append(opened.Parts, Open("retries.conf", []byte(snippet), "").Parts...))[0].File.Unjudged {
		if strings.Contains(f.Message, "is included") {
			t.Errorf("got %s, though the file is included", f.Message)
		}
	}
}
