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

// An interval of 0 means the default where a duration bounds the tries, and what the
// environment says is not taken for nothing.
func TestCaddyTimes(t *testing.T) {
	proxy := func(block string) string { return "reverse_proxy a:80 {\n" + block + "\n}\n" }
	for _, tt := range []struct {
		name, block string
		want, not   []string
	}{
		{"no interval", "lb_try_duration 1s\nlb_try_interval 0", []string{"a:80 [] x5, waits up to 0s, attempt 3s, total 1s"}, []string{"at least"}},
		{"a duration from the environment", "lb_try_duration {$TRY:5s}", []string{"a:80 [] x2 at least", `"{$TRY:5s}" is no duration`}, []string{"R-3"}},
		{"an interval from the environment", "lb_try_duration 1s\nlb_try_interval {$WAIT}", []string{"a:80 [] x5 at least"}, nil},
		{"a number alone", "lb_retries 2", []string{"a:80 [] x3,", "R-3 total.missing: lb_try_duration is missing"}, []string{"at least"}},
		{"more tries than the standard has", "lb_try_duration 10s\nlb_try_interval 1s", []string{"a:80 [] x11,", "2 R-2 max_retries: lb_try_duration lets 10 retries begin, when they fail at once, and the standard has 1-5: bound them by lb_retries"}, []string{"max_retries 10"}},
		{"more than the standard has", "lb_retries 9\nlb_try_duration 10s", []string{"2 R-2 max_retries: max_retries 9 is outside 1-5"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("Caddyfile", proxy(tt.block)), tt.want, tt.not) })
	}
}

// A response is tried again where an expression looks at it, and nowhere else.
func TestCaddyMatches(t *testing.T) {
	for _, tt := range []struct {
		name, match string
		want, not   []string
	}{
		{"none", "", []string{"cannot R-7", "cannot R-1"}, []string{"R-5", "R-6"}},
		{"by method", "lb_retry_match method GET", nil, []string{"R-5", "R-6"}},
		{"POST", "lb_retry_match method GET POST", []string{"4 R-6 methods: lb_retry_match repeats POST, with or without an Idempotency-Key: have it match on method, and on idempotent ones alone"}, []string{"R-5"}},
		{"by status", "lb_retry_match expression `method('GET') && {rp.status_code} == 503`", []string{"cannot R-5"}, nil},
		{"by a header", "lb_retry_match expression {http.reverse_proxy.header.X-Again}=='yes'", []string{"cannot R-5"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			holds(t, said("Caddyfile", "reverse_proxy a:80 {\n lb_retries 2\n lb_try_duration 5s\n "+tt.match+"\n}\n"), tt.want, tt.not)
		})
	}
}

// What a Caddyfile imports may retry.
func TestCaddyImports(t *testing.T) {
	const file = "(again) {\n lb_retries {args[0]}\n}\na.example {\n import tls\n reverse_proxy a:80 {\n  import again 7\n }\n}\nimport sites/*\n"
	holds(t, said("Caddyfile", file), []string{"a:80 [a.example] x2 at least", "note 5: import tls is not followed", "note 10: import sites/* is not followed"}, []string{"import again"})
}
