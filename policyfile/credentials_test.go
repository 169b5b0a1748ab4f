package policyfile

import (
	"reflect"
	"strings"
	"testing"
)

// around puts the lines of credentials into a file.
func withCredentials(lines ...string) []byte {
	return []byte("dependencies:\n  payments:\n    url: https://payments.test\n    credentials:\n      " + strings.Join(lines, "\n      ") + "\n")
}

func TestCredentials(t *testing.T) {
	t.Setenv("TOKEN_URL", "https://auth.test/from-environment")
	for name, tc := range map[string]struct {
		lines []string
		want  Credentials
	}{
		"environment": {[]string{"secret: {env: PAYMENTS_AUTH}"}, Credentials{Secret: Secret{Env: "PAYMENTS_AUTH"}}},
		"file, over the callers'": {
			[]string{"secret: {file: /run/secrets/payments}", "override: true"},
			Credentials{Secret: Secret{File: "/run/secrets/payments"}, Override: true},
		},
		"client credentials": {
			[]string{"token_url: https://auth.test/token", "client_id: checkout", "client_secret: {env: S}", "scopes: [pay, 'https://x.test/refund']"},
			Credentials{TokenURL: "https://auth.test/token", ClientID: "checkout", ClientSecret: Secret{Env: "S"}, Scopes: []string{"pay", "https://x.test/refund"}},
		},
		"a token service on this machine": {
			[]string{"token_url: http://127.0.0.1:9/token", "client_id: checkout", "client_secret: {env: S}"},
			Credentials{TokenURL: "http://127.0.0.1:9/token", ClientID: "checkout", ClientSecret: Secret{Env: "S"}},
		},
		"its address from the environment": {
			[]string{"token_url: {env: TOKEN_URL}", "client_id: checkout", "client_secret: {env: S}"},
			Credentials{TokenURL: "https://auth.test/from-environment", ClientID: "checkout", ClientSecret: Secret{Env: "S"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("p.yaml", withCredentials(tc.lines...))
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Dependencies[0].Credentials; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			data, err := Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse("again.yaml", data)
			if err != nil || !reflect.DeepEqual(again.Dependencies[0].Credentials, tc.want) {
				t.Errorf("written and read again: %v\n%s", err, data)
			}
		})
	}
}

// TestFaultyCredentials: each fault has its place, and none shows a secret.
func TestFaultyCredentials(t *testing.T) {
	for want, lines := range map[string][]string{
		"p.yaml:5:15: credentials.secret of payments": {"secret: planted"},
		"5:22: credentials.client_secret of paym":     {"client_secret: planted", "client_id: a", "token_url: https://auth.test/"},
		"credentials need secret, or token_url":       {"override: true"},
		"both secret and token_url":                   {"secret: {env: A}", "token_url: https://auth.test/", "client_id: a", "client_secret: {env: B}"},
		"with token_url need client_id and":           {"token_url: https://auth.test/", "client_secret: {env: B}"},
		"client_id, client_secret and scopes need":    {"secret: {env: A}", "client_id: a"},
		"has both env and file":                       {"secret: {env: A, file: b}"},
		"is not https, so the client's secret would":  {"token_url: http://auth.test/", "client_id: a", "client_secret: {env: B}"},
		"token_url holds credentials":                 {"token_url: https://a:planted@auth.test/", "client_id: a", "client_secret: {env: B}"},
		"has a query or a fragment":                   {"token_url: 'https://auth.test/?key=planted'", "client_id: a", "client_secret: {env: B}"},
		"unknown key \"secrte\" in credentials":       {"secrte: {env: A}"},
		"a scope is \"two words\": want one word":     {"token_url: https://auth.test/", "client_id: a", "client_secret: {env: B}", "scopes: [two words]"},
		"credentials.override is \"yes\": want true":  {"secret: {env: A}", "override: 'yes'"},
		"is not the name of an environment variable":  {"secret: {env: planted-secret}"},
		"unknown key \"vault\" in credentials.secret": {"secret: {vault: x}"},
	} {
		_, err := Parse("p.yaml", withCredentials(lines...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", lines, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "planted") {
			t.Errorf("the fault shows a secret: %v", err)
		}
	}
	_, err := Parse("p.yaml", []byte("webhooks:\n  orders:\n    url: https://orders.test\n    credentials: {secret: {env: A}}\n"))
	if err == nil || !strings.Contains(err.Error(), "p.yaml:4:18: orders of section webhooks has credentials") {
		t.Errorf("a webhook's credentials: %v", err)
	}
}
