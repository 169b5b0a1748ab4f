package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		"  literal: {url: https://l.internal, breaker: {on_budget: immediate}}\n")
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		out    string
		errors string
	}{
		{"help", []string{"sim", "--help"}, 0, "forbear sim serve", ""},
		{"nothing", []string{"sim"}, 2, "", "say what to do"},
		{"slip", []string{"sim", "rnu", "x"}, 2, "", "did you mean run?"},
		{"no operand", []string{"sim", "run"}, 2, "", "name a scenario file"},
		{"too many", []string{"sim", "run", "a", "b"}, 2, "", `unexpected argument "b"`},
		{"no such file", []string{"sim", "run", "metastabel"}, 2, "", "did you mean metastable?"},
		{"bad output", []string{"sim", "run", mine, "-o", "pdf"}, 2, "", `output "pdf" is unknown`},
		{"bad engine", []string{"sim", "run", mine, "--engine", "steam"}, 2, "", `"steam" is unknown`},
		{"bad file", []string{"sim", "run", bad}, 2, "", "bad.yaml:2:22: services[0]: unknown field \"capacty\": did you mean capacity?"},
		{"list", []string{"sim", "list"}, 0, "payment-fleet-200", ""},
		{"show", []string{"sim", "show", "five-layers"}, 0, `"oblivious": true`, ""},
		{"show none", []string{"sim", "show", "nine-layers"}, 2, "", "forbear sim list"},
		{"schema", []string{"sim", "schema"}, 0, `"$schema"`, ""},
		{"run", []string{"sim", "run", mine}, 0, "recovered", ""},
		{"flags first", []string{"sim", "--engine", "cohort", "run", mine}, 0, "cohort engine", ""},
		{"metastable", []string{"sim", "run", "metastable", "--engine", "cohort"}, 1, "METASTABLE", ""},
		{"csv", []string{"sim", "run", mine, "-o", "csv"}, 0, "t_s,offered,fresh", ""},
		{"svg", []string{"sim", "run", mine, "-o", "svg"}, 0, "<svg", ""},
		{"html", []string{"sim", "run", mine, "-o", "html"}, 0, "<!doctype html>", ""},
		{"compare", []string{"sim", "compare", mine, "--engine", "cohort"}, 0, "+ circuit breaker", ""},
		{"compare as csv", []string{"sim", "compare", mine, "-o", "csv"}, 2, "", "want text, json or html"},
		{"sweep", []string{"sim", "sweep", "metastable", "--engine", "cohort", "--loads", "3", "--triggers", "3"}, 0, "1.00x", ""},
		{"least", []string{"sim", "least", "metastable", "--engine", "cohort"}, 1, "sticks", ""},
		{"least without", []string{"sim", "least", "budgeted", "--engine", "cohort", "--longest", "10s"}, 0, "no fault of up to 10s sticks", ""},
		{"partial", []string{"sim", "run", "partial"}, 0, "steady: the fault lasts", ""},
		{"partial, self-inflicted", []string{"sim", "run", "partial", "--policy", policy + "#literal"}, 1, "SELF-INFLICTED", ""},
		{"compare partial", []string{"sim", "compare", "partial", "--policy", policy + "#literal"}, 0, "self-inflicted", ""},
		{"curve", []string{"sim", "curve", "partial", "--points", "5"}, 0, "without breakers", ""},
		{"curve as svg", []string{"sim", "curve", "partial", "--points", "5", "-o", "svg"}, 0, "<svg", ""},
		{"curve as csv", []string{"sim", "curve", "partial", "--points", "5", "-o", "csv"}, 0, "share,good,", ""},
		{"curve as json", []string{"sim", "curve", "partial", "--points", "5", "-o", "json"}, 0, `"good_without_breakers"`, ""},
		{"curve as html", []string{"sim", "curve", "partial", "-o", "html"}, 2, "", "want text, json, csv or svg"},
		{"curve of a brownout", []string{"sim", "curve", "metastable"}, 2, "", "want errors or outage"},
		{"too large", []string{"sim", "run", "hundred-million", "--engine", "exact"}, 2, "", "--force"},
		{"policy", []string{"sim", "run", mine, "--policy", policy + "#payments"}, 0, "recovered", ""},
		{"no policy", []string{"sim", "run", mine, "--policy", policy + "#search"}, 2, "", `no dependency "search"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := invoke(t, "", tt.args...)
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d (%s)", got.code, tt.code, got.errors)
			}
			if !strings.Contains(got.out, tt.out) || !strings.Contains(got.errors, tt.errors) {
				t.Errorf("got %q and %q, want %q and %q", got.out, got.errors, tt.out, tt.errors)
			}
		})
	}
}

func TestSimReadsStandardInput(t *testing.T) {
	shown := invoke(t, "", "sim", "show", "standard-budget")
	got := invoke(t, shown.out, "sim", "run", "-", "-o", "json")
	var r struct {
		Summary struct{ Multiplier float64 }
	}
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != 0 {
		t.Fatalf("%d %v %s", got.code, err, got.errors)
	}
	again := invoke(t, shown.out, "sim", "run", "-", "-o", "json")
	if again.out != got.out {
		t.Error("the same scenario and seed give other bytes")
	}
}

func TestSimServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(pipe, 16)
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"sim", "serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), out, out)
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
		if code != exitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end with its context")
	}
}

// pipe hands on what is written.
type pipe chan string

func (p pipe) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}
