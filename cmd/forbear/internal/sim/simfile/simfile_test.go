//forbear:plain it reads and simulates on one goroutine
package simfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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
			`bad.yaml:4:17: faults[0].rate is "3__x%": want a number of this kind`,
			`bad.yaml:1:11: duration: "soon" is not a duration`,
			`bad.yaml:2:7: seed is "-1": want a number of this kind`,
			`bad.yaml:3:9: fleets is "3": want a list`,
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
			"bad.yaml:3:5: fleets[0]: sets 2 of rate, load, users and burst",
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
