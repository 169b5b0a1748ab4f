// Package shapetest has policies of many shapes, for the tests of what is written for
// other software.
package shapetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Shape is a dependency, as a policy file has it.
type Shape struct{ Name, Text string }

// File is a policy file with that dependency alone.
func (s Shape) File() []byte {
	return []byte("service: a\ndependencies:\n  \"" + s.Name + "\": " + s.Text + "\n")
}

var (
	names = []string{
		"payments", "Payments_API", "true", "null", "on", "123", "1e3", "0x1F", "a.b-c", "_x", "-x", "http", "NO", strings.Repeat("a", 63),
	}
	urls = []string{
		"", "https://localhost:8443", "http://127.0.0.1:9000", "https://[::1]:8443", "http://[2001:db8::1]", "https://localhost/v1/%20x/",
		"https://127.0.0.1", "http://localhost/a;b/{c}", "http://LOCALHOST:80",
	}
	// Each is one of the keys of a policy, or nothing.
	keys = [][]string{
		{"idempotency: reuse", "idempotency: generate", "idempotency: refuse", "idempotent: true", "idempotency: reuse, retry_unsent: true"},
		{"", "max_retries: 1", "max_retries: 5", "disabled: true"},
		{"", "", "kind: grpc"},
		{"", "total: 5s", "total: 12.3456789s"},
		{"", "per_attempt: 333ms", "per_attempt: 2500us", "per_attempt: 1.234567891s"},
		{"", "connect: 500us", "connect: 100ms"},
		{
			"", "backoff: {base: 10ms, cap: 10s}", "backoff: {base: 500us}", "backoff: {base: 3s, cap: 20s, jitter: decorrelated}",
			"backoff: {schedule: [0s, 1s, 2s, 4s, 8s, 16s]}",
		},
		{"", "budget: {ratio: 7%}", "budget: {ratio: 0.0001}", "budget: {max_multiplier: 1.1}", "budget: {ratio: 10%, of: total, window: 60s}", "strict: true"},
		{
			"", "classify: {http_425: retry, http_408: terminal}", "classify: {http_5xx: terminal, connection_reset: terminal}",
			"classify: {grpc_UNAVAILABLE: terminal, grpc_INTERNAL: retry}", "classify: {http_4xx: terminal, http_5xx: retry}",
		},
		{"", "breaker: {disabled: true}", "breaker: {failure_rate: 33.3%}"},
		{"", "", "max_concurrent: 10", "pace: off", "health: {min_success: 50%}", "methods: [GET, POST]"},
		{"", "", "endpoints: ['10.0.0.1:8443', '[::1]:8443']", "tls: {server_name: pay.example, ca: /etc/ssl/certs/ca-certificates.crt}"},
	}
)

// All returns n shapes, always the same.
func All(n int) (all []Shape) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	for range n {
		parts := []string{"owner: a"}
		url := pick(urls)
		if url != "" {
			parts = append(parts, fmt.Sprintf("url: %q", url))
		}
		for _, values := range keys {
			switch part := pick(values); {
			case part == "", strings.HasPrefix(part, "tls:") && !strings.HasPrefix(url, "https"), strings.HasPrefix(part, "endpoints:") && url == "":
			default:
				parts = append(parts, part)
			}
		}
		all = append(all, Shape{Name: pick(names), Text: "{" + strings.Join(parts, ", ") + "}"})
	}
	return all
}
