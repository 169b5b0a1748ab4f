//forbear:plain it simulates; storm races what runs at once
package sim

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestSim(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mine := write("mine.yaml", "name: mine\nduration: 60s\nfleets: [{rate: 500, client: {timeout: 1s}}]\nservices: [{name: s, capacity: 1000}]\nfaults: [{kind: outage, at: 5s, for: 2s}]\n")
	bad := write("bad.yaml", "fleets: [{rate: 500}]\nservices: [{name: s, capacty: 3}]\nfaults: [{kind: quake, for: 1s}]\n")
	policy := write("policy.yaml", "service: checkout\ndependencies:\n  payments: {url: https://p.internal, max_retries: 1}\n"+
		"  literal: {url: https://l.internal, breaker: {on_budget: immediate}}\n"+
		"  waived: {url: {env: NOT_SET_HERE}, max_retries: 7}\nwaivers: [{rule: R-2, dependency: waived, reason: approved by the board, expires: 2999-01-01}]\n")
	measured := write("measured.csv", "time,rate,p50,p99\n0,100,0.01,0.1\n10,300,0.02,0.2\n")
	crooked := write("crooked.csv", "time,rate\n0,much\n10,\n")
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		out    string
		errors string
	}{
		{"help", []string{"--help"}, 0, "forbear sim serve", ""},
		{"nothing", nil, 2, "", "want one of run"},
		{"slip", []string{"rnu", "x"}, 2, "", "did you mean run?"},
		{"no operand", []string{"run"}, 2, "", "name a scenario file"},
		{"too many", []string{"run", "a", "b"}, 2, "", `unexpected argument "b"`},
		{"no such file", []string{"run", "metastabel"}, 2, "", "did you mean metastable?"},
		{"bad output", []string{"run", mine, "-o", "pdf"}, 2, "", `output "pdf" is unknown`},
		{"bad engine", []string{"run", mine, "--engine", "steam"}, 2, "", `"steam" is unknown`},
		{"bad file", []string{"run", bad}, 2, "", "bad.yaml:2:22: unknown key \"capacty\" in services[0]: did you mean capacity?"},
		{"flag of another verb", []string{"run", mine, "--points", "3"}, 2, "", "--points belongs to sim curve"},
		{"flag of other verbs", []string{"curve", mine, "--longest", "3s"}, 2, "", "--longest belongs to sim sweep and sim least"},
		{"nothing", []string{"sweep", mine, "--loads", "0"}, 2, "", "--loads is 0: want more"},
		{"least as a picture", []string{"least", mine, "-o", "svg"}, 2, "", "want text or json"},
		{"list", []string{"list"}, 0, "payment-fleet-200", ""},
		{"show", []string{"show", "five-layers"}, 0, `"oblivious": true`, ""},
		{"show none", []string{"show", "nine-layers"}, 2, "", "forbear sim list"},
		{"schema", []string{"schema"}, 0, `"$schema"`, ""},
		{"run", []string{"run", mine}, 0, "recovered", ""},
		{"flags first", []string{"--seed", "2", "run", mine}, 0, "seed 2", ""},
		{"no such engine", []string{"run", mine, "--engine", "cohort"}, 2, "", `"cohort" is unknown: want auto or exact`},
		{"metastable", []string{"run", "contention-collapse"}, 1, "METASTABLE", ""},
		{"csv", []string{"run", mine, "-o", "csv"}, 0, "t_s,offered,fresh", ""},
		{"svg", []string{"run", mine, "-o", "svg"}, 0, "<svg", ""},
		{"html", []string{"run", mine, "-o", "html"}, 0, "<!doctype html>", ""},
		{"compare", []string{"compare", mine}, 0, "+ circuit breaker", ""},
		{"compare as csv", []string{"compare", mine, "-o", "csv"}, 2, "", "want text, json or html"},
		{"sweep", []string{"sweep", "contention-collapse", "--loads", "3", "--triggers", "3"}, 0, "1.00x", ""},
		{"least", []string{"least", "contention-collapse", "--longest", "10s"}, 1, "half of the runs do not recover from a first fault", ""},
		{"least without", []string{"least", "standard-budget", "--longest", "2s"}, 0, "recovers from every first fault of up to 2s", ""},
		{"partial", []string{"run", "partial"}, 0, "steady: the fault lasts", ""},
		{"partial, self-inflicted", []string{"run", "partial", "--policy", policy + "#literal"}, 1, "SELF-INFLICTED", ""},
		{"compare partial", []string{"compare", "partial", "--policy", policy + "#literal"}, 0, "self-inflicted", ""},
		{"curve", []string{"curve", "partial", "--points", "5"}, 0, "without breakers", ""},
		{"curve as svg", []string{"curve", "partial", "--points", "5", "-o", "svg"}, 0, "<svg", ""},
		{"curve as csv", []string{"curve", "partial", "--points", "5", "-o", "csv"}, 0, "share,good,", ""},
		{"curve as json", []string{"curve", "partial", "--points", "5", "-o", "json"}, 0, `"good_without_breakers"`, ""},
		{"curve as html", []string{"curve", "partial", "-o", "html"}, 2, "", "want text, json, csv or svg"},
		{"curve of a brownout", []string{"curve", "metastable"}, 2, "", "want errors or outage"},
		{"too large", []string{"run", "hundred-million", "--engine", "exact"}, 2, "", "--force"},
		{"policy", []string{"run", mine, "--policy", policy + "#payments"}, 0, "recovered", ""},
		{"measured", []string{"run", mine, "--from", measured}, 0, "latency of good calls: p50 19", ""},
		{"measured, compared", []string{"compare", mine, "--from", measured}, 0, "+ circuit breaker", ""},
		{"measured with mistakes", []string{"run", mine, "--from", crooked}, 2, "", "crooked.csv:3:4: rate \"\" is not a number"},
		{"not measured", []string{"run", mine, "--from", "none.csv"}, 2, "", "none.csv"},
		{"policy with a waiver", []string{"run", "partial", "--policy", policy + "#waived"}, 0, "steady", ""},
		{"no policy", []string{"run", mine, "--policy", policy + "#search"}, 2, "", `no dependency "search"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := clitest.Run(t, Command(), "", tt.args...)
			if got.Code != tt.code {
				t.Errorf("exit code %d, want %d (%s)", got.Code, tt.code, got.Errors)
			}
			if !strings.Contains(got.Out, tt.out) || !strings.Contains(got.Errors, tt.errors) {
				t.Errorf("got %q and %q, want %q and %q", got.Out, got.Errors, tt.out, tt.errors)
			}
		})
	}
}

func TestSimReadsStandardInput(t *testing.T) {
	shown := clitest.Run(t, Command(), "", "show", "standard-budget")
	got := clitest.Run(t, Command(), shown.Out, "run", "-", "-o", "json")
	var r struct {
		Summary struct{ Multiplier float64 }
	}
	if err := json.Unmarshal([]byte(got.Out), &r); err != nil || got.Code != 0 {
		t.Fatalf("%d %v %s", got.Code, err, got.Errors)
	}
	again := clitest.Run(t, Command(), shown.Out, "run", "-", "-o", "json")
	if again.Out != got.Out {
		t.Error("the same scenario and seed give other bytes")
	}
}

func TestSimServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(pipe, 16)
	done := make(chan int)
	go func() {
		done <- Command().Run(ctx, &cli.Streams{Out: out, Err: out}, []string{"serve", "--listen", "127.0.0.1:0"})
	}()
	line := <-out
	url := strings.TrimSpace(line[strings.Index(line, "http://"):])
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s", url, resp.Status)
	}
	cancel()
	select {
	case code := <-done:
		if code != cli.ExitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end with its context")
	}
}

// pipe hands on what is written.
type pipe chan string

func (p pipe) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}
