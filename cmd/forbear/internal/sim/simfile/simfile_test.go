//forbear:plain it reads and simulates on one goroutine
package simfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storm"
)

const good = `# the lesson's exercise
name: payments
duration: 2m
fleets:
  - name: payment
    rate: 2_000
    instances: 200
    client:
      retries: 3
      timeout: 2s
      base: 500ms
      cap: 20s
      breaker: true
      budget: {ratio: 10%, of: total}
services:
  - name: processor
    capacity: 2800
    concurrency: 100
    retry_after: 2s
faults:
  - {kind: outage, at: 20s, for: 20s, rate: 0.8}
`

func TestParse(t *testing.T) {
	s, err := Parse("good.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Fleets[0].Client
	if s.Duration.D() != 2*time.Minute || s.Fleets[0].Rate != 2000 || *c.Retries != 3 || !*c.Breaker ||
		c.Budget.Ratio != 0.1 || c.Budget.Of != "total" || s.Faults[0].Rate != 0.8 || s.Faults[0].Kind != storm.Outage {
		t.Errorf("read %+v", s)
	}
	r, err := storm.Run(t.Context(), s, storm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Headline())
}

// Every mistake has its place and its reason, and all come at once.
func TestMistakesHavePlaces(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"not YAML", "a: [", []string{"bad.yaml:2:1: not YAML"}},
		{"empty", "", []string{"bad.yaml:1:1: the file is empty: forbear init writes one to start from"}},
		{"a list", "- 1\n", []string{"bad.yaml:1:1: the file is a list: want a mapping"}},
		{"a long list", "faults: [" + strings.Repeat("{}, ", 1001) + "]\n", []string{"bad.yaml:1:9: faults has 1001 entries: want at most 1000"}},
		{"unknown field", "durations: 1m\n", []string{`bad.yaml:1:1: unknown key "durations" in the file: did you mean duration?`}},
		{"twice", "name: a\nname: b\n", []string{`bad.yaml:2:1: key "name" of the file appears twice, first on line 1`}},
		{"wrong kinds", "duration: soon\nseed: -1\nfleets: 3\nfaults: [{rate: 3__x%}]\n", []string{
			`bad.yaml:4:17: faults[0].rate is "3__x%": want a number such as 10_000 or 0.5`,
			`bad.yaml:1:11: duration: "soon" is not a duration`,
			`bad.yaml:2:7: seed is "-1": want a whole number such as 10_000`,
			`bad.yaml:3:9: fleets is "3": want a list`,
		}},
		{"zeros that are defaults", `duration: 0s
fleets: [{users: 5, think: 0s, client: {base: 0s, retries: 0, budget: {min_retries: 0}}}]
services: [{name: s}]
faults: [{kind: outage, for: 1s, rate: 0}, {kind: brownout, for: 1s, factor: 0.0}]
`, []string{
			"bad.yaml:1:11: duration: 0s stands for the default, 1m0s: leave it out, or write what is meant",
			"bad.yaml:2:28: fleets[0].think: 0s stands for the default, 1s: leave it out, or write what is meant",
			"bad.yaml:2:47: fleets[0].client.base: 0s stands for the default: leave it out, or write baseline: {wait: none}",
			"bad.yaml:2:85: fleets[0].client.budget.min_retries: 0 stands for the default: leave it out, or write strict: true",
			"bad.yaml:4:40: faults[0].rate: 0 stands for the default, 1: leave it out, or write what is meant",
			"bad.yaml:4:78: faults[1].factor: 0.0 stands for the default, 0.5: leave it out, or write what is meant",
		}},
		{"what would be read as something else", `fleets:
  - {rate: 30%, client: {budget: {ratio: 10%}, baseline: {no_budget: true, bucket: {deposit: 1}}}}
  - {rate: 1, client: {policy: ""}}
services: [{name: s, replicas: 2}]
faults: [{kind: outage, for: 1s, replicas: 0}]
`, []string{
			"bad.yaml:2:12: fleets[0].rate: 30% is a share, and this is none: write a plain number",
			"bad.yaml:2:34: fleets[0].client.budget: baseline takes the place of the budget: remove one of them",
			"bad.yaml:2:84: fleets[0].client.baseline.bucket: there is no bucket without size",
			"bad.yaml:3:32: fleets[1].client.policy is empty: want FILE or FILE#DEPENDENCY",
			"bad.yaml:5:44: faults[0].replicas: 0 stands for all: leave it out, or write how many",
		}},
		{"fields of another kind", `fleets: [{rate: 5, think: 1s}]
services: [{name: s, cv: 2}]
faults: [{kind: errors, for: 1s, share: 0.5}, {kind: spike, for: 1s, service: s}]
`, []string{
			"bad.yaml:1:27: fleets[0].think: belongs to a fleet with users",
			"bad.yaml:2:26: services[0].cv: belongs to the lognormal: the law is exponential",
			"bad.yaml:3:41: faults[0].share: does not belong to errors: the fields are kind, at, for, service, rate, status, retry_after, method, mode, replicas",
			"bad.yaml:3:79: faults[1].service: does not belong to spike: the fields are kind, at, for, factor",
		}},
		{"ranges", `
fleets:
  - rate: 100
    users: 3
    client:
      retries: 9
      jitter: equal
services:
  - name: s
    queue: 1s
faults:
  - kind: meteor
    for: 1s
    service: t
`, []string{
			"bad.yaml:3:5: fleets[0]: sets 2 of rate, load, users and burst above 0",
			`bad.yaml:7:15: fleets[0].client.jitter: "equal" is unknown`,
			"bad.yaml:9:5: services[0].capacity: is unlimited",
			`bad.yaml:12:11: faults[0].kind: "meteor" is unknown`,
			`bad.yaml:14:14: faults[0].service: no service is called "t"`,
		}},
		{"the standard", "fleets: [{rate: 1, client: {retries: 9}}]\nservices: [{name: s}]\n", []string{
			"bad.yaml:1:28: fleets[0].client", "max_retries 9 is outside 1-5 (R-2)",
		}},
		{"cycle", "fleets: [{rate: 1}]\nservices:\n- {name: a, calls: [{to: b}]}\n- {name: b, calls: [{to: a}]}\n", []string{
			"bad.yaml:4:26: services[1].calls[0].to: closes a cycle",
		}},
		{"servers", `
fleets:
  - rate: 100
    client:
      method: get
  - rate: 100
    client: {key: true}
services:
  - name: s
    limit: {burst: 3}
    timeout: -1s
faults:
  - {kind: errors, for: 1s, status: 200}
  - {kind: slow, for: 1s, rate: 10%}
  - kind: outage
    for: 1s
    time: 3s
`, []string{
			`bad.yaml:5:15: fleets[0].client.method: "get" is unknown: want GET, HEAD`,
			"bad.yaml:7:19: fleets[1].client.key: changes nothing for GET, which is idempotent: set method to POST or PATCH",
			"bad.yaml:10:12: services[0].limit.rate: is missing",
			"bad.yaml:11:14: services[0].timeout: -1s is outside",
			"bad.yaml:13:37: faults[0].status: 200 is outside 400 to 599",
			"bad.yaml:14:5: faults[1].time: is missing: how long",
			"bad.yaml:17:11: faults[2].time: does not belong to outage: the fields are kind, at, for, service, rate, status, retry_after, method",
		}},
		{"policy file", "fleets: [{rate: 1, client: {policy: missing.yaml#a}}]\nservices: [{name: s}]\n", []string{
			"bad.yaml:1:37: fleets[0].client.policy:", "missing.yaml",
		}},
		{"alias", "name: &a [*a]\n", []string{"bad.yaml:1:11: alias *a contains itself"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("bad.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got\n%v\nwant %s", err, want)
				}
			}
		})
	}
}

func TestPolicyFromFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("policy.yaml", `
service: checkout
dependencies:
  payments:
    url: https://payments.internal
    max_retries: 2
    backoff: {base: 200ms, cap: 5s}
    budget: {ratio: 10%, window: 60s}
`)
	s, err := Load(write("sim.yaml", "fleets: [{rate: 100, client: {policy: policy.yaml#payments}}]\nservices: [{name: s}]\nduration: 1s\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Fleets[0].Client.Policy
	if p == nil || p.MaxRetries != 2 || p.Backoff.Base != 200*time.Millisecond || p.Budget.Ratio != 0.1 {
		t.Errorf("policy %+v", p)
	}
	if _, err := storm.Run(t.Context(), s, storm.Options{}); err != nil {
		t.Error(err)
	}
}

// The policies of a text are those of the file; faults have their places, and show no secret.
func TestPolicies(t *testing.T) {
	const text = `
dependencies:
  payments: {url: {env: NOT_SET_HERE}, owner: shop, max_retries: 7, credentials: {secret: {env: TOKEN}}}
consumers:
  orders: {owner: shop, dead_letter: {queue: q, alert: x}}
waivers:
  - {rule: R-2, dependency: payments, reason: approved by the board, expires: 2999-01-01}
`
	all, err := Policies([]byte(text))
	if err != nil || len(all) != 2 || all["payments"].MaxRetries != 7 {
		t.Fatalf("%v, %v", all, err)
	}
	s, _ := storm.FindNamed("partial")
	if _, err := storm.Run(t.Context(), s.WithPolicy(all["payments"]), storm.Options{}); err != nil {
		t.Errorf("a policy with a waiver: %v", err)
	}
	_, err = Policies([]byte("dependencies:\n  payments: {owner: a, credentials: {secret: hunter2}, bakoff: 3}\n"))
	var got []string
	for _, f := range storm.FieldErrors(err) {
		got = append(got, f.Error())
	}
	want := []string{
		"line 2, column 46: credentials.secret of payments is in clear: write {env: NAME} or {file: PATH} (R-9)",
		`line 2, column 56: unknown key "bakoff" in dependency payments: did you mean backoff?`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoadBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(path, make([]byte, maxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
	if _, err := Load(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// Each named scenario survives being written and read.
func TestNamedScenariosRoundTrip(t *testing.T) {
	for _, s := range storm.Named() {
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(s.Name+".json", data)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if again, _ := json.MarshalIndent(back, "", "  "); string(again) != string(data) {
			t.Errorf("%s reads back as\n%s\nwant\n%s", s.Name, again, data)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("fleets: [{rate: 1}]\nservices: [{name: s}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yaml", data)
		if err != nil {
			return
		}
		if _, err := s.Estimate(storm.Options{}); err != nil {
			t.Errorf("accepted, and then: %v", err)
		}
	})
}
