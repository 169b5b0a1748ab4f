package policyfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const secured = `dependencies:
  payments:
    url: https://payments.internal
    http2: only
    tls: {ca: ca.pem, cert: /run/tls/tls.crt, key: /run/tls/tls.key, server_name: payments.test, min_version: 1.3}
  search: {url: http://search.internal, http2: "off"}
  plain: {url: https://plain.internal, tls: {verify: true}, http2: auto}
gateway:
  tls: {cert: gw.crt, key: gw.key, client_ca: clients.pem, min_version: "1.2"}
  routes:
    - {prefix: /pay, dependency: payments}
`

func TestTLS(t *testing.T) {
	f := must(t, secured)
	check := func(f *File, text string) {
		t.Helper()
		for name, want := range map[string]Dependency{
			"payments": {TLS: TLS{"ca.pem", "/run/tls/tls.crt", "/run/tls/tls.key", "payments.test", "1.3"}, HTTP2: HTTP2Only},
			"search":   {HTTP2: HTTP2Off},
			"plain":    {},
		} {
			if d, _ := f.Dependency(name); d.TLS != want.TLS || d.HTTP2 != want.HTTP2 {
				t.Errorf("%s: got %+v and %v, want %+v and %v%s", name, d.TLS, d.HTTP2, want.TLS, want.HTTP2, text)
			}
		}
		if want := (ListenerTLS{"gw.crt", "gw.key", "clients.pem", "1.2"}); f.Gateway.TLS != want {
			t.Errorf("got %+v, want %+v%s", f.Gateway.TLS, want, text)
		}
	}
	check(f, "")
	d, _ := f.Dependency("payments")
	if at, ok := d.Place("tls.server_name"); !ok || at.Line != 5 {
		t.Errorf("tls.server_name is at %v, %v; want line 5", at, ok)
	}
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	check(must(t, string(data)), "\nread back from\n"+string(data))

	var changes []string
	next := strings.NewReplacer("ca: ca.pem, ", "", "1.3", "1.2", `"off"`, "only", "gw.crt", "new.crt").Replace(secured)
	for _, c := range Diff(f, must(t, next)) {
		changes = append(changes, c.Text)
	}
	if want := []string{
		"gateway.tls has changed",
		"payments: tls.ca is now the default, it was ca.pem",
		"payments: tls.min_version is now 1.2, it was 1.3",
		"search: http2 is now only, it was off",
	}; !slices.Equal(sorted(changes), want) {
		t.Errorf("got %q, want %q", changes, want)
	}
	if again := Diff(f, must(t, secured)); len(again) != 0 {
		t.Errorf("the same file: %v", again)
	}
	if !reflect.DeepEqual(f.Gateway, must(t, secured).Gateway) {
		t.Error("two readings differ")
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func TestTLSFaults(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"verify", "dependencies: {a: {tls: {verify: false}}}", "f:1:34: a: tls.verify cannot be turned off: name the authority with tls.ca (R-9)"},
		{"slip", "dependencies: {a: {tls: {cafile: x}}}", `f:1:26: unknown key "cafile" in tls`},
		{"half", "dependencies: {a: {tls: {cert: x}}}", "f:1:25: tls needs both cert and key, or neither"},
		{"version", "dependencies: {a: {tls: {min_version: 1.1}}}", `f:1:39: tls.min_version is "1.1": did you mean 1.2?`},
		{"name", "dependencies: {a: {tls: {server_name: 'a:443'}}}", `f:1:39: tls.server_name is "a:443": want a host name without a port`},
		{"in clear", "dependencies: {a: {url: 'http://a', tls: {ca: x}}}", "f:1:42: a: tls needs an https url, and this one is http"},
		{"webhook", "webhooks: {a: {url: 'https://a', tls: {ca: x}}}", "f:1:39: a of section webhooks has tls, which only dependencies may have"},
		{"consumer", "consumers: {a: {http2: only}}", "f:1:24: a of section consumers has http2, which only dependencies may have"},
		{"profile", "profiles: {p: {tls: {ca: x}}}", `f:1:16: unknown key "tls" in profile p`},
		{"http2", "dependencies: {a: {http2: on}}", `f:1:27: http2 is "on": want auto, off or only`},
		{"listener without a key", "gateway: {tls: {cert: x}}", "f:1:16: gateway.tls needs cert and key"},
		{"listener's verify", "gateway: {tls: {cert: x, key: y, verify: false}}", `f:1:34: unknown key "verify" in gateway.tls`},
		{"listener's version", "gateway: {tls: {cert: x, key: y, min_version: tls1}}", `f:1:47: gateway.tls.min_version is "tls1": want 1.2 or 1.3`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.text))
			if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(l string) bool { return strings.HasPrefix(l, tt.want) }) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
