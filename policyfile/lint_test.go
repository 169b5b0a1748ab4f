package policyfile

import (
	"reflect"
	"strings"
	"testing"
)

const linted = `
service: checkout
dependencies:
  payments: {url: "https://payments.internal", max_retries: 2}
consumers:
  orders: {dead_letter: {queue: orders.dead, alert: pager}}
waivers:
  - {id: W-1, rule: R-1, code: [internal/legacy/...], reason: goes with the old vendor, expires: 2099-06-30}
lint:
  key_headers: [X-Request-Token]
  code:
    payments: [internal/payments/..., cmd/pay/main.go]
    orders: [internal/orders]
`

// The linter's section and waivers of code are read, and survive being written.
func TestLintSection(t *testing.T) {
	f, err := Parse("policy.yaml", []byte(linted))
	if err != nil {
		t.Fatal(err)
	}
	want := Lint{KeyHeaders: []string{"X-Request-Token"}, Code: map[string][]string{
		"payments": {"internal/payments/...", "cmd/pay/main.go"}, "orders": {"internal/orders"},
	}}
	if !reflect.DeepEqual(f.Lint, want) {
		t.Errorf("got %+v, want %+v", f.Lint, want)
	}
	if w := f.Waivers[0]; w.Dependency != "" || !reflect.DeepEqual(w.Code, []string{"internal/legacy/..."}) {
		t.Errorf("got waiver of %q and %v, want one of code alone", w.Dependency, w.Code)
	}
	if opts := f.Options(); len(opts) != 1 { // the service; the waiver lifts nothing of a Retryer
		t.Errorf("got %d options, want 1", len(opts))
	}
	text, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(again.Lint, want) || !reflect.DeepEqual(again.Waivers[0].Code, f.Waivers[0].Code) {
		t.Errorf("got %+v and %v after\n%s", again.Lint, again.Waivers[0].Code, text)
	}
}

func TestLintSectionFaults(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"unknown dependency", "    orders:", "    order:", "did you mean orders?"},
		{"unknown key", "key_headers:", "key_header:", "did you mean key_headers?"},
		{"no list", "[internal/orders]", "internal/orders", "want a list"},
		{"waiver of nothing", "code: [internal/legacy/...], ", "", "a waiver needs dependency, code or files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("policy.yaml", []byte(strings.Replace(linted, tt.from, tt.to, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
