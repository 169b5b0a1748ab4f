package idemfixture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// configure gathers what requests of the scenario want of the middleware. A
// process has one configuration: two that differ fail the test.
func configure(t *testing.T, c *Config, steps []step) {
	t.Helper()
	said := map[string]string{}
	for _, s := range steps {
		for _, q := range []*request{&s.request, s.Request} {
			if q == nil {
				continue
			}
			for name, v := range q.Config {
				if before, ok := said[name]; ok && before != string(v) {
					t.Fatalf("config %s is both %s and %s: one process has one configuration", name, before, v)
				}
				said[name] = string(v)
			}
		}
	}
	for name, v := range said {
		if err := c.set(name, json.RawMessage(v)); err != nil {
			t.Fatalf("config %s: %s: %v", name, v, err)
		}
	}
}

// set sets one knob. Durations are texts such as "500ms", or numbers of the
// unit that the name ends with.
func (k *Knobs) set(name string, v json.RawMessage) error {
	durations := map[string]*time.Duration{
		"lease": &k.Lease, "wait": &k.Wait, "retention": &k.Retention, "max_run": &k.MaxRun, "store_timeout": &k.StoreTimeout,
	}
	base, unit := name, time.Duration(0)
	for suffix, u := range map[string]time.Duration{"_ms": time.Millisecond, "_s": time.Second} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			base, unit = rest, u
		}
	}
	if into := durations[base]; into != nil {
		return readDuration(v, unit, into)
	}
	plain := map[string]any{
		"max_waiters": &k.MaxWaiters, "rerun": &k.Rerun, "replay_header": &k.ReplayHeader, "keep_headers": &k.KeepHeaders,
		"max_request": &k.MaxRequest, "max_request_bytes": &k.MaxRequest, "max_response": &k.MaxResponse, "max_response_bytes": &k.MaxResponse,
	}
	if into := plain[name]; into != nil {
		return json.Unmarshal(v, into)
	}
	if name != "takeover" {
		return fmt.Errorf("is not understood")
	}
	var word string
	if err := json.Unmarshal(v, &word); err != nil || !slices.Contains([]string{"rerun", "quarantine"}, word) {
		return fmt.Errorf("is not understood: want rerun or quarantine")
	}
	k.Rerun = word == "rerun"
	return nil
}

func readDuration(v json.RawMessage, unit time.Duration, into *time.Duration) error {
	if unit > 0 {
		var n int64
		err := json.Unmarshal(v, &n)
		*into = time.Duration(n) * unit
		return err
	}
	var text string
	if err := json.Unmarshal(v, &text); err != nil {
		return err
	}
	return (*duration)(into).UnmarshalText([]byte(text))
}

// What is not understood is an error, at every level.
func TestScenarioIsStrict(t *testing.T) {
	for _, text := range []string{
		`{"do":"sleep","ms":1,"by":"1s"}`,                       // another step's field
		`{"do":"request","id":"r","method":"GET","colour":"x"}`, // nobody's
		`{"do":"dance"}`,
		`{"do":"parallel","n":2,"asynchronous":true,"request":{"id":"r"}}`,
		`{"do":"parallel","n":2,"request":{"id":"r","colour":"x"}}`,
	} {
		var s step
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s was understood", text)
		}
	}
	var k Knobs
	for name, v := range map[string]string{"colour": `1`, "lease": `5`, "lease_ms": `"5s"`, "takeover": `"maybe"`, "max_waiters": `"x"`} {
		if err := k.set(name, json.RawMessage(v)); err == nil {
			t.Errorf("config %s = %s was understood", name, v)
		}
	}
	for name, v := range map[string]string{"lease": `"5s"`, "wait_ms": `200`, "retention": `"2d"`, "takeover": `"rerun"`, "max_request": `100`} {
		if err := k.set(name, json.RawMessage(v)); err != nil {
			t.Errorf("config %s = %s: %v", name, v, err)
		}
	}
	if k.Lease != 5*time.Second || k.Wait != 200*time.Millisecond || k.Retention != 48*time.Hour || !k.Rerun || k.MaxRequest != 100 {
		t.Errorf("got %+v", k)
	}
	for _, text := range []string{`{"drop_answer":1}`, `"explode"`, `{"drop_response":"x"}`, `7`} {
		if _, err := readFaults(json.RawMessage(text)); err == nil {
			t.Errorf("proxy %s was understood", text)
		}
	}
}
