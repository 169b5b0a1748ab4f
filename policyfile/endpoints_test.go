package policyfile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const reached = `
dependencies:
  payments:
    url: https://payments.internal/v1
    endpoints: ["10.0.0.1:8443", "[fd00::1]:8443", payments-3.internal:8443]
    connection_age: 90s
  search: {url: "https://search.internal", endpoints: dns, connection_age: off}
  one: {url: "http://one.internal", endpoints: [10.0.0.9:80]}
  plain: {url: "http://plain.internal"}
`

// What says where connections go reads, is written back, and shows in a diff.
func TestEndpoints(t *testing.T) {
	f := must(t, reached)
	for name, want := range map[string]struct {
		endpoints Endpoints
		age       time.Duration
	}{
		"payments": {Endpoints{Addresses: []string{"10.0.0.1:8443", "[fd00::1]:8443", "payments-3.internal:8443"}}, 90 * time.Second},
		"search":   {Endpoints{DNS: true}, -1},
		"one":      {Endpoints{Addresses: []string{"10.0.0.9:80"}}, 0},
		"plain":    {},
	} {
		d, _ := f.Dependency(name)
		if !reflect.DeepEqual(d.Endpoints, want.endpoints) || d.ConnectionAge != want.age {
			t.Errorf("%s: %+v, %v; want %+v", name, d.Endpoints, d.ConnectionAge, want)
		}
	}
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again := must(t, string(data))
	for _, d := range f.Dependencies {
		back, _ := again.Dependency(d.Name)
		if !reflect.DeepEqual(back.Endpoints, d.Endpoints) || back.ConnectionAge != d.ConnectionAge {
			t.Errorf("%s was read back as %+v, %v from\n%s", d.Name, back.Endpoints, back.ConnectionAge, data)
		}
	}
	var changes []string
	for _, c := range Diff(f, must(t, strings.NewReplacer("10.0.0.1:", "10.0.0.2:", "90s", "off", "endpoints: dns, ", "").Replace(reached))) {
		changes = append(changes, c.Text)
	}
	if want := []string{
		"payments: endpoints is now 10.0.0.2:8443, [fd00::1]:8443, payments-3.internal:8443, it was 10.0.0.1:8443, [fd00::1]:8443, payments-3.internal:8443",
		"payments: connection_age is now off, it was 1m30s",
		"search: endpoints is now the default, it was dns",
	}; !reflect.DeepEqual(changes, want) {
		t.Errorf("got %q, want %q", changes, want)
	}
}

func TestEndpointFaults(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"endpoints: none", `3:14: endpoints is "none": want dns, or a list of addresses such as 10.0.0.1:8443`},
		{"endpoints: {a: 1}", "3:14: endpoints is a mapping: want a list"},
		{"endpoints: []", "3:14: endpoints is empty: leave it out to connect to the url's host"},
		{"endpoints: [10.0.0.1]", `3:15: endpoint "10.0.0.1" lacks a host or a port: want an address such as 10.0.0.1:8443`},
		{"endpoints: ['10.0.0.1:0']", `3:15: endpoint "10.0.0.1:0" lacks a host or a port: want an address such as 10.0.0.1:8443`},
		{"endpoints: ['http://a:80']", `3:15: endpoint "http://a:80" lacks a host or a port: want an address such as 10.0.0.1:8443`},
		{"endpoints: [a:80, b:80, a:80]", `3:27: endpoint "a:80" appears twice, first on line 3`},
		{"endpoints: [[a:80]]", "3:15: an endpoint is a list: want an address such as 10.0.0.1:8443"},
		{"url: http://10.0.0.1/\n  endpoints: dns", "4:14: endpoints is dns, but the url's host is an address: use a host name, or leave endpoints out"},
		{"connection_age: 10ms", "3:19: connection_age is 10ms: want at least 1s"},
		{"connection_age: 0s", "3:19: connection_age is 0: leave it out for the default"},
		{"connection_age: -1s", "3:19: connection_age is negative"},
	} {
		_, err := Parse("f", []byte("dependencies:\n a:\n  "+tt.text+"\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.text, err, tt.want)
		}
	}
	many := make([]string, maxEndpoints+1)
	for i := range many {
		many[i] = fmt.Sprintf("h%d:80", i)
	}
	_, err := Parse("f", []byte("dependencies:\n a:\n  endpoints: ["+strings.Join(many, ", ")+"]\n"))
	if err == nil || !strings.Contains(err.Error(), "endpoints has too many addresses: want at most 256") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"endpoints: dns", "connection_age: 5m"} {
		_, err := Parse("f", []byte("webhooks:\n a:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "which only dependencies may have") {
			t.Errorf("%s of a webhook: got %v", text, err)
		}
	}
}
