//forbear:plain it has no concurrency of its own; cmd/forbear/internal/check runs its workers under the race detector
package check

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/internal/former"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var today = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const findings = "testdata/findings"

// limits are those of the findings that need one.
var limits = map[string]Options{
	"FC504": {MaxAmplification: 1.43},
	"FC505": {MaxDuration: 20 * time.Second},
}

func options(id string) Options {
	o := limits[id]
	o.Now, o.AllowedSigners = today, "testdata/allowed_signers"
	return o
}

// sources reads the files of one case: has.yaml, or has-1.yaml and has-2.yaml.
func sources(t *testing.T, id, name string) []Source {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(findings, id, name+"*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s of %s (%v)", name, id, err)
	}
	var found []Source
	for _, path := range paths {
		if strings.HasSuffix(path, ".txt") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(filepath.Base(path), data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		found = append(found, s)
	}
	return found
}

func ids(fs []report.Finding) (ids []string) {
	for _, f := range fs {
		if f.Suppressed == "" {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// Each finding has a file that has it, and one that nearly has it.
func TestFindings(t *testing.T) {
	former.Keys["ceiling"] = former.Name{Instead: "cap", Until: "v0.3.0"}
	t.Cleanup(func() { delete(former.Keys, "ceiling") })
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			got := Run(sources(t, rule.ID, "has"), options(rule.ID))
			if !slices.Contains(ids(got.Findings), rule.ID) {
				t.Errorf("has: got %v, want %s", ids(got.Findings), rule.ID)
			}
			var b bytes.Buffer
			if err := (&report.Report{Findings: got.Findings}).Text(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(findings, rule.ID, "has.txt"), b.String())
			near := Run(sources(t, rule.ID, "near"), options(rule.ID))
			named(t, got)
			named(t, near)
			if slices.Contains(ids(near.Findings), rule.ID) {
				t.Errorf("near: got %v, want no %s", near.Findings, rule.ID)
			}
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, got:\n%s", path, got)
	}
}

// What the near misses of the policies themselves leave is nothing at all.
func TestNearMissesAreClean(t *testing.T) {
	for _, rule := range Rules() {
		if rule.ID < "FC100" || rule.ID >= "FC900" || rule.ID == "FC209" {
			continue
		}
		got := Run(sources(t, rule.ID, "near"), options(rule.ID))
		for _, f := range got.Findings {
			if f.ID != "FC002" { // what no file of the product can change
				t.Errorf("%s: got %v, want none", rule.ID, f)
			}
		}
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	var last string
	for _, r := range Rules() {
		if r.ID <= last {
			t.Errorf("%s after %s", r.ID, last)
		}
		last = r.ID
		if r.Name == "" || r.Summary == "" || r.Why == "" || r.Fix == "" {
			t.Errorf("%s lacks a text", r.ID)
		}
		// FC002 stands for several rules: each finding names its own.
		if r.Waivable && r.ID != "FC002" && (r.Standard == "" || r.Standard == "R-9") {
			t.Errorf("%s is waivable, but by no rule", r.ID)
		}
	}
}

// parse reads a policy file given as text.
func parse(t *testing.T, name, text string) Source {
	t.Helper()
	s, err := Read(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnreadableFilesDoNotPass(t *testing.T) {
	if _, err := Read("a.yaml", []byte("dependencies: {a: {max_retires: 2}}")); err == nil {
		t.Error("an unknown key was let through")
	}
}

// A count that no one can mean is a finding, at once.
func TestAbsurdCounts(t *testing.T) {
	for _, text := range []string{
		"dependencies: {a: {owner: a, max_retries: 9223372036854775807}}\n",
		"webhooks: {a: {owner: a, max_attempts: 9223372036854775807}}\n",
	} {
		got := Run([]Source{parse(t, "f.yaml", text)}, Options{Now: today})
		if !slices.Contains(ids(got.Findings), "FC201") || got.Loads[0].Duration < 0 || got.Loads[0].Attempts < 1 {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
