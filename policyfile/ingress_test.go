package policyfile

import (
	"strings"
	"testing"
	"time"
)

func ingressFile(options string) string {
	return "dependencies:\n  payments: {url: http://p.internal}\ngateway:\n  routes:\n    - prefix: /pay\n      dependency: payments\n      idempotency: " + options + "\n"
}

func TestIngressOfARoute(t *testing.T) {
	for options, want := range map[string]Ingress{
		"on":   {On: true},
		"true": {On: true},
		"off":  {},
		"{}":   {On: true},
		"{principal: single, required: false, retention: 3d, wait: 2s, timeout: 1m, max_request: 64KiB, max_response: 2 MiB, rerunnable: true}": {
			On: true, Principal: Principal{Single: true}, Optional: true, Retention: 72 * time.Hour, Wait: 2 * time.Second,
			Timeout: time.Minute, MaxRequest: 64 << 10, MaxResponse: 2 << 20, Rerunnable: true,
		},
		"{principal: {header: X-User}, max_request: 1000}": {On: true, Principal: Principal{Header: "X-User"}, MaxRequest: 1000},
		"{principal: {jwt: {claim: tenant, keys: jwks.json, issuer: 'https://id.example', audience: pay, leeway: 30s}}}": {
			On: true, Principal: Principal{JWT: JWT{Claim: "tenant", Keys: "jwks.json", Issuer: "https://id.example", Audience: "pay", Leeway: 30 * time.Second}},
		},
	} {
		f, err := Parse("f", []byte(ingressFile(options)))
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		got := f.Gateway.Routes[0].Idempotency
		if got.At.Line != 7 {
			t.Errorf("%s: at %v", options, got.At)
		}
		got.At = Position{}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", options, got, want)
		}
		// What is written is read back as the same.
		text, err := Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("f", text)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", options, err, text)
		}
		again := back.Gateway.Routes[0].Idempotency
		again.At = Position{}
		if again != want {
			t.Errorf("%s: came back as %+v from\n%s", options, again, text)
		}
		if changes := Diff(f, back); len(changes) > 0 {
			t.Errorf("%s: a difference to itself: %v", options, changes)
		}
	}
}

func TestIngressFaults(t *testing.T) {
	for options, want := range map[string]string{
		"yes":                              `f:7:20: idempotency is "yes": want on, off, true or false`,
		"no":                               `f:7:20: idempotency is "no": want on, off, true or false`,
		"onn":                              `f:7:20: idempotency is "onn": did you mean on?`,
		"{principle: single}":              `f:7:21: unknown key "principle" in idempotency: did you mean principal?`,
		"{principal: singel}":              `f:7:32: principal is "singel": did you mean single?`,
		"{principal: {}}":                  "f:7:32: principal needs either header or jwt",
		"{principal: {header: Cookie}}":    "f:7:41: principal.header is Cookie, whose value changes when a token is refreshed",
		"{principal: {jwt: {claim: sub}}}": "f:7:38: jwt needs keys: a file with public keys, as PEM or JWKS",
		"{principal: {jwt: {key: a}}}":     `f:7:39: unknown key "key" in jwt: did you mean keys?`,
		"{retention: 23h}":                 "f:7:32: idempotency.retention 23h is under 24h: clients may retry for that long (R-6)",
		"{max_request: 1MB}":               `f:7:34: idempotency.max_request is "1MB": want a size such as 64KiB or 1MiB`,
		"{max_request: 0}":                 `f:7:34: idempotency.max_request is "0": want 1 byte to 1024MiB`,
		"{wait: -1s}":                      "f:7:27: idempotency.wait is negative",
		"{required: maybe}":                `f:7:31: idempotency.required is "maybe": want true or false`,
	} {
		_, err := Parse("f", []byte(ingressFile(options)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", options, err, want)
		}
	}
}
