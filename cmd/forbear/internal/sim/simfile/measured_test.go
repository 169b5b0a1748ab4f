package simfile

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storm"
)

const sec = storm.Duration(time.Second)

// One minute in three rows, as it is in each form of time.
func TestMeasuredForms(t *testing.T) {
	for _, times := range [][]string{
		{"0", "20", "40"},
		{"1700000000.5", "1700000020.5", "1700000040.5"},
		{"2026-03-01T10:00:00Z", "2026-03-01T10:00:20Z", "2026-03-01T11:00:40+01:00"},
	} {
		text := "\ufeffrate, time,p99,p50\n100," + times[0] + ",0.2,0.01\n300," + times[1] + ",0.9,0.05\n250," + times[2] + ",NaN,0.02\n"
		m, err := ParseMeasured("m.csv", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := []storm.Step{{At: 0, Rate: 100}, {At: 20 * sec, Rate: 300}, {At: 40 * sec, Rate: 250}}; !slices.Equal(m.Load, want) {
			t.Errorf("load %v, want %v", m.Load, want)
		}
		// Of 650 requests a second 325 had at most 20 ms; of 400 with a p99, 300 had 0.9 s.
		ms := sec / 1000
		if want := []storm.Quantile{{Q: 0.5, Time: 20 * ms}, {Q: 0.99, Time: 900 * ms}}; !slices.Equal(m.Quantiles, want) {
			t.Errorf("quantiles %v, want %v", m.Quantiles, want)
		}
		if m.Span != 60*sec {
			t.Errorf("%v of rows, want three of 20 s", m.Span)
		}
	}
}

// What was measured replaces what the scenario has, and nothing else.
func TestMeasuredOverAScenario(t *testing.T) {
	s, err := Parse("s.yaml", []byte(`
fleets: [{users: 3, think: 2s, instances: 4}, {rate: 7}]
services: [{name: a, capacity: 900, time: 3ms, law: lognormal, cv: 2, retry_after: 1s}, {name: b}]
`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMeasured("m.csv", []byte("time,rate,p50,p90\n0,200,0.01,0.03\n10,600,0.01,0.03\n"))
	if err != nil {
		t.Fatal(err)
	}
	s = m.Over(s)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if v := s.Services[0]; s.Duration != 20*sec || s.Fleets[0].Instances != 4 || s.Fleets[1].Rate != 7 || v.Capacity != 900 || v.RetryAfter != sec {
		t.Errorf("got %+v", s)
	}
	r, err := storm.Run(t.Context(), s, storm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if calls := r.Summary.Calls; math.Abs(calls-(8000+140)) > 300 {
		t.Errorf("%v calls, want 200 and 600 a second of 10 s, and 140", calls)
	}
	if math.Abs(float64(r.Summary.P50)-10) > 0.5 {
		t.Errorf("p50 %v ms, want 10", r.Summary.P50)
	}

	// Latencies alone leave the load, and a load alone the times.
	m.Load = nil
	plain, _ := Parse("s.yaml", []byte("fleets: [{rate: 7}]\nservices: [{name: a, time: 3ms}]\nduration: 5s\n"))
	if s := m.Over(plain); s.Fleets[0].Rate != 7 || s.Services[0].Quantiles == nil || s.Services[0].Time != 0 || s.Duration != 5*sec {
		t.Errorf("latencies over a rate: %+v", s)
	}
}

func TestMeasuredMistakesHavePlaces(t *testing.T) {
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString("time,rate\n")
		for i := range n {
			fmt.Fprintf(&b, "%d,1\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"m.csv:1:1: the file is empty: want a line time,rate,p50,p90,p95,p99"}},
		{"only a header", "time,rate\n", []string{"m.csv:2:1: there are no rows"}},
		{"a slip", "time,rates\n0,1\n", []string{`m.csv:1:6: unknown column "rates": did you mean rate?`}},
		{"another word", "time,requests\n0,1\n", []string{`m.csv:1:6: unknown column "requests": want some of time,rate`}},
		{"twice", "time,rate,rate\n0,1,1\n", []string{"m.csv:1:11: column rate appears twice"}},
		{"no time", "rate\n1\n", []string{"m.csv:1:1: there is no column time"}},
		{"time alone", "time\n1\n", []string{"m.csv:1:1: there is no column besides time"}},
		{"one latency", "time,rate,p99\n1,1,1\n", []string{"m.csv:1:1: there is one column of latencies"}},
		{"a short row", "time,rate\n0,1\n5\n", []string{"m.csv:3:1: not CSV"}},
		{"a quote", "time,rate\n0,\"1\n", []string{"m.csv:2:6: not CSV"}},
		{"all at once", "time,rate,p50,p99\n0,one,1,2\n5,-1,1,2\n10,1,x,2\n15,1,2,1\n20,1,0,1\n", []string{
			`m.csv:2:3: rate "one" is not a number of requests a second`,
			`m.csv:3:3: rate "-1" is not`,
			`m.csv:4:6: p50 "x" is not a number of seconds`,
			`m.csv:5:8: p99 1 is below a lower quantile of the same row, 2`,
			`m.csv:6:6: p50 "0" is not`,
		}},
		{"no number of seconds", "time,rate\nnoon,1\n", []string{`m.csv:2:1: time "noon" is neither RFC 3339`}},
		{"two forms", "time,rate\n0,1\n2026-03-01T10:00:00Z,1\n", []string{`m.csv:3:1: time "2026-03-01T10:00:00Z" is not of the form of the first, "0"`}},
		{"backwards", "rate,time\n1,5\n1,5\n", []string{`m.csv:3:3: time "5" is not after`}},
		{"milliseconds", "time,rate\n1700000000000,1\n1700000015000,1\n1700900000000,1\n", []string{"m.csv:4:1:", "a run lasts at most 24h"}},
		{"no value", "time,rate,p50,p99\n0,1,0.1,NaN\n5,0,,3\n", []string{"m.csv:1:1: column p99 has no value where there are requests"}},
		{"too many rows", rows(10_001), []string{"m.csv:10002:1: there are more than 10000 rows"}},
		{"too large", rows(10_000) + strings.Repeat("\n", maxMeasured), []string{"m.csv:1:1: the file is larger than 4 MiB"}},
	} {
		_, err := ParseMeasured("m.csv", []byte(tt.text))
		if err == nil {
			t.Errorf("%s: accepted", tt.name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got\n%v\nwant %s", tt.name, err, want)
			}
		}
	}
	if _, err := ParseMeasured("m.csv", []byte(rows(10_000))); err != nil {
		t.Errorf("10,000 rows: %v", err)
	}
}

func TestLoadMeasuredReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.csv")
	if _, err := LoadMeasured(path); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("time,rate\n0,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := LoadMeasured(path); err != nil || len(m.Load) != 1 || m.Span != 0 {
		t.Errorf("one row: %+v, %v", m, err)
	}
}

// The new words of a scenario have places as the others do.
func TestMistakesOfBoundsHavePlaces(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{
			"fleets: [{load: [{at: 0s, rate: 1}, {at: 0s, rate: 2}]}]\nservices: [{name: s}]\n",
			"bad.yaml:1:42: fleets[0].load[1].at: 0s is not after the step before",
		},
		{"fleets: [{load: []}]\nservices: [{name: s}]\n", "bad.yaml:1:17: fleets[0].load: has no rate above 0"},
		{"fleets: [{rate: 1}]\nservices: [{name: s, law: fixed, quantiles: [{q: 0.5, time: 1s}, {q: 0.9, time: 2s}]}]\n", "bad.yaml:2:27: services[0].law: follows from quantiles"},
		{
			"fleets: [{rate: 1}]\nservices: [{name: s, replicas: 2}]\nfaults: [{kind: outage, for: 1s, replicas: 3}]\n",
			"bad.yaml:3:44: faults[0].replicas: 3 is outside 1 to 2",
		},
		{"fleets: [{rate: 1, client: {connections: -1}}]\nservices: [{name: s}]\n", "bad.yaml:1:42: fleets[0].client.connections: -1 is outside"},
	} {
		if _, err := Parse("bad.yaml", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// The bound of a policy file counts as that of the scenario's word.
func TestMaxConcurrentOfAPolicyFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policy.yaml": "service: web\ndependencies:\n  api: {url: \"http://api.internal\", max_concurrent: 3, breaker: {disabled: true}}\n",
		"sim.yaml":    "fleets: [{rate: 100, client: {policy: policy.yaml}}]\nservices: [{name: s, time: 200ms}]\nduration: 20s\n",
		"both.yaml":   "fleets: [{rate: 100, client: {policy: policy.yaml, max_concurrent: 4}}]\nservices: [{name: s}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(filepath.Join(dir, "sim.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := storm.Run(t.Context(), s, storm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 20 erlangs for three places: Erlang's formula lets 14.3 % through.
	if got := r.Summary.Good / r.Summary.Calls; math.Abs(got-0.143) > 0.02 || r.Summary.Verdict != storm.Limited {
		t.Errorf("%.3f of the calls are good, want 0.143; verdict %s", got, r.Summary.Verdict)
	}
	if _, err := Load(filepath.Join(dir, "both.yaml")); err == nil || !strings.Contains(err.Error(), "max_concurrent: is set by the policy as well") {
		t.Errorf("both: %v", err)
	}
}

func FuzzMeasured(f *testing.F) {
	f.Add([]byte("time,rate,p50,p99\n0,1,0.1,0.2\n5,2,NaN,1\n"))
	f.Add([]byte("p50,time,p90\n0.1,2026-03-01T10:00:00Z,0.2\n"))
	f.Add([]byte("time,rate\n\"0,1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMeasured("fuzz.csv", data)
		if err != nil {
			return
		}
		s, err := Parse("s.yaml", []byte("fleets: [{rate: 1}]\nservices: [{name: s}]\nduration: 24h\n"))
		if err != nil {
			t.Fatal(err)
		}
		// What storm may still refuse are a load of nothing and medians that cross.
		if err := m.Over(s).Validate(); err != nil && !strings.Contains(err.Error(), "no rate above 0") && !strings.Contains(err.Error(), "is below that of q") {
			t.Errorf("accepted, and then: %v", err)
		}
	})
}
