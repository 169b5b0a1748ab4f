package foreign

import (
	"strings"
	"testing"
)

// What Traefik's middlewares send again, by its pages on retry and buffering and by the
// source of both.
func TestTraefik(t *testing.T) {
	retry := func(more string) string {
		return "http: {routers: {r: {service: s, middlewares: [m]}, q: {service: s}}, middlewares: {m: {retry: {attempts: 3, timeout: 9s" + more + "}}}}"
	}
	buffer := func(expression string) string {
		return "http: {routers: {r: {service: s, middlewares: [m]}}, middlewares: {m: {buffering: {retryExpression: '" + expression + "'}}}}"
	}
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"connections alone", retry(""), []string{"s [r m] x3", "cannot R-7", "cannot R-1"}, []string{"R-5", "R-6"}},
		{"statuses", retry(", status: [503]"), []string{"cannot R-5"}, nil},
		{"statuses without a pause", retry(", status: ['500-502']"), nil, []string{"R-5"}},
		{"connections left out", retry(", disableRetryOnNetworkError: true"), []string{"s [r m] x1,"}, []string{"cannot", "note"}},
		{"statuses, and connections left out", retry(", status: [503], disableRetryOnNetworkError: true"), []string{"s [r m] x3"}, nil},
		{"a buffer that only buffers", "http: {routers: {r: {service: s, middlewares: [m]}}, middlewares: {m: {buffering: {maxRequestBodyBytes: 9}}}}", []string{"quiet 1\n"}, []string{"x"}},
		{"a buffer that repeats", buffer("IsNetworkError() && Attempts() < 3"), []string{"s [r m] x3", "1 R-6 methods: retryExpression repeats POST", "cannot R-1", "cannot R-3 total.missing", "cannot R-7"}, []string{"R-2", "R-4", "R-5", "note"}},
		{"a buffer that repeats once", buffer("(ResponseCode() == 502) && Attempts() <= 1"), []string{"s [r m] x2"}, []string{"R-5", "note"}},
		{"a buffer without a limit", buffer("IsNetworkError() || ResponseCode() == 503 && Attempts() <= 2"), []string{"s [r m] x11", "R-2 max_retries", "cannot R-5"}, nil},
		{"a buffer that repeats what stays", buffer("ResponseCode() >= 404 && ResponseCode() < 410 && Attempts() <= 2"), []string{"x3", "R-4 classify.http_404", "R-4 classify.http_409"}, []string{"http_400", "http_422", "R-5"}},
		{"a buffer for GET", buffer(`RequestMethod() == "GET" && Attempts() != 2`), []string{"s [r m] x2"}, []string{"R-6"}},
		{"a buffer that never repeats", buffer("Attempts() < 1"), []string{"quiet 1\n"}, []string{"x", "note"}},
		{"a word that is not known", buffer("Latency() > 3 && Attempts() < 3"), []string{"x3 at least", "note 1: retryExpression of s is not understood"}, nil},
		{"no operator of Traefik's", buffer("!(Attempts() > 2)"), []string{"at least", "is not understood"}, nil},
		{"no expression", buffer("Attempts() <"), []string{"at least", "note 1: retryExpression of s is not understood"}, nil},
		{"two routers with one transport", "http: {routers: {a: {service: s}, b: {service: s}}, services: {s: {loadBalancer: {serversTransport: t}}}, serversTransports: {t: {insecureSkipVerify: true}}}", []string{"R-9"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := said("t.yaml", tt.text)
			holds(t, got, tt.want, tt.not)
			if strings.Count(got, "R-9") > 1 {
				t.Errorf("R-9 more than once in\n%s", got)
			}
		})
	}
	// The first releases of version 2, whose routers stand at the top, have no timeout.
	holds(t, said("t.toml", "[Routers.r]\nService = \"s\"\nMiddlewares = [\"m\"]\n[Middlewares.m.Retry]\nAttempts = 4\n"),
		[]string{"s [r m] x4", "cannot R-3 total.missing"}, []string{"the middleware has no timeout"})
}
