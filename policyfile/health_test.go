package policyfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/health"
)

const healthy = `
profiles:
  careful: {health: {min_success: 50%, window: 30s}}
dependencies:
  payments:
    extends: careful
    health: {min_calls: 40, endpoint: https://payments.internal/health/ready, interval: 10s}
  search: {extends: careful, service: health} # a value that is a section's name
consumers:
  orders: {health: {min_success: 0.4}}
`

// TestHealth reads the section where two parts share it: the limits, which a
// profile may hold, and the endpoint of one dependency. What is written reads back.
func TestHealth(t *testing.T) {
	f := must(t, healthy)
	want := map[string]health.Policy{
		"payments": {MinSuccess: 0.5, Window: 30 * time.Second, MinCalls: 40},
		"search":   {MinSuccess: 0.5, Window: 30 * time.Second},
		"orders":   {MinSuccess: 0.4},
	}
	for _, d := range f.All() {
		if d.Policy.Health != want[d.Name] {
			t.Errorf("%s: got %+v, want %+v", d.Name, d.Policy.Health, want[d.Name])
		}
	}
	d, _ := f.Dependency("payments")
	if d.Probe != (Probe{"https://payments.internal/health/ready", 10 * time.Second}) {
		t.Errorf("got %+v", d.Probe)
	}
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again := must(t, string(data))
	if back, _ := again.Dependency("payments"); back.Probe != d.Probe || back.Policy.Health != d.Policy.Health {
		t.Errorf("read back: %+v, %+v from\n%s", back.Probe, back.Policy.Health, data)
	}
	var changes []string
	for _, c := range Diff(f, must(t, strings.ReplaceAll(strings.Replace(healthy, "10s", "20s", 1), "50%", "60%"))) {
		changes = append(changes, c.Text)
	}
	if want := []string{
		"payments: health.interval is now 20s, it was 10s",
		"payments: health.min_success is now 60%, it was 50%",
		"search: health.min_success is now 60%, it was 50%",
	}; !reflect.DeepEqual(changes, want) {
		t.Errorf("got %q, want %q", changes, want)
	}
}

func TestHealthFaults(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"percent", "dependencies: {a: {health: {min_success: 100%}}}", "f:1:42: a: health.min_success 100% stops retries at the first failure: set disabled instead"},
		{"no limit", "dependencies: {a: {health: {window: 30s}}}", "f:1:28: a: health has a window or min_calls without min_success: set min_success"},
		{"slip", "dependencies: {a: {health: {min_sucess: 50%}}}", `f:1:29: unknown key "min_sucess" in health: did you mean min_success?`},
		{"interval alone", "dependencies: {a: {health: {interval: 5s}}}", "f:1:28: health has an interval without an endpoint: set health.endpoint"},
		{"negative", "dependencies: {a: {health: {endpoint: 'http://a/', interval: -5s}}}", "f:1:62: health.interval is negative"},
		{"no address", "dependencies: {a: {health: {endpoint: a/health}}}", "f:1:39: health.endpoint is not an http or https address: want an address such as https://payments.internal/v1"},
		{"secret", "dependencies: {a: {health: {endpoint: 'http://u:hush@a/'}}}", "f:1:39: health.endpoint holds credentials, which do not belong in a policy file: use the key credentials (R-9)"},
		{"profile", "profiles: {p: {health: {endpoint: 'http://a/'}}}", `f:1:25: unknown key "endpoint" in health`},
		{"consumer", "consumers: {a: {health: {endpoint: 'http://a/'}}}", "f:1:36: a of section consumers has health.endpoint, which only dependencies may have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.text)); err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
