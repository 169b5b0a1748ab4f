package serve

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// A route whose callers are one must not share records with a caller of the same name,
// which it may have had before, or has later.
func TestSingleIsNoCallersName(t *testing.T) {
	single, err := scopeOf(&policyfile.File{}, policyfile.Principal{Single: true})
	if err != nil {
		t.Fatal(err)
	}
	header, err := scopeOf(&policyfile.File{}, policyfile.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", nil)
	all, err := single(r)
	if err != nil || all == "" {
		t.Fatalf("got %q, %v", all, err)
	}
	for _, name := range []string{"all", "single", "*"} {
		r.Header.Set(policyfile.DefaultPrincipal, name)
		if caller, err := header(r); err != nil || caller == all {
			t.Errorf("a caller called %q is all: %q, %v", name, caller, err)
		}
	}
	if all[0] != ' ' {
		t.Errorf("the value of a header may be %q", all)
	}
}

// Where versions before have kept the records of a route is known, and whether what is
// found there can only be of the route and the caller that ask.
func TestFormerScopes(t *testing.T) {
	parse := func(text string) *policyfile.File {
		f, err := policyfile.Parse("policy.yaml", []byte("dependencies: {a: {url: 'http://127.0.0.1:1'}, b: {url: 'http://127.0.0.1:2'}}\ngateway: {listen: '127.0.0.1:0', routes: ["+text+"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const header, single = "idempotency: {principal: {header: X-User}}", "idempotency: {principal: single}"
	for _, tt := range []struct {
		name, routes, scope, want string
	}{
		{"a caller", "{prefix: /x, dependency: a, " + header + "}", "ann b", "ann b true"},
		{"one for all", "{prefix: /x, dependency: a, " + single + "}", " all", "all true"},
		{"another prefix", "{prefix: /x, dependency: a, " + header + "}, {prefix: /x/y, dependency: b, " + header + "}", "ann", "ann true"},
		{"another method", "{prefix: /x, methods: [POST], dependency: a, " + header + "}, {prefix: /x, methods: [PATCH], dependency: b, " + header + "}", "ann", "ann true"},
		{"another host without keys", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /x, host: b.test, dependency: b}", "ann", "ann true"},
		{"another host", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /x, host: b.test, dependency: b, " + single + "}", "ann", "ann false"},
		{"another host above", "{prefix: /x/y, host: a.test, dependency: a, " + header + "}, {prefix: /x, dependency: b, " + header + "}", "ann", "ann false"},
		{"another host beside", "{prefix: /x, host: a.test, dependency: a, " + header + "}, {prefix: /xy, host: b.test, dependency: b, " + header + "}", "ann", "ann true"},
		{"another header", "{prefix: /x, headers: {X-V: '1'}, dependency: a, " + header + "}, {prefix: /x, dependency: b, " + header + "}", "ann", "ann false"},
		{"a token", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem, issuer: 'https://i'}}}}", "https://i ann%20b", "ann b true"},
		{"a token of any issuer", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem}}}}", "https://i ann", "ann false"},
		{"a token without one", "{prefix: /x, dependency: a, idempotency: {principal: {jwt: {keys: k.pem}}}}", "ann%25", "ann% false"},
	} {
		file := parse(tt.routes)
		scope, sure := formerScope(file, file.Gateway.Routes[0])(tt.scope)
		if got := fmt.Sprint(scope, " ", sure); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
