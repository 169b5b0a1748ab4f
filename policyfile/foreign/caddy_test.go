package foreign

import "testing"

// Every directive that sends a request on has the settings of reverse_proxy.
func TestCaddyProxies(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"the short forms", "Caddyfile:::a.example {\n php_fastcgi unix//run/php.sock {\n  lb_retries 7\n }\n forward_auth auth:9091 {\n  uri /verify\n  lb_retries 8\n }\n}\n", "caddy unix//run/php.sock 7, caddy auth:9091 8"},
		{"behind a response", "Caddyfile:::reverse_proxy a:80 {\n handle_response {\n  reverse_proxy b:80 {\n   lb_retries 7\n  }\n }\n}\n", "caddy b:80 7, caddy quiet 1"},
		{"behind a response in JSON", `c.json:::{"handler": "reverse_proxy", "handle_response": [{"routes": [{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "b:80"}], "load_balancing": {"retries": 7}}]}]}]}`, "caddy b:80 7, caddy quiet 1"},
	} {
		if got := units(tt.file); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
