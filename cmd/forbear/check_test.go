package main

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"
	warned  = "service: a\ndependencies:\n  b: {owner: a}\n"
	failing = "service: a\ndependencies:\n  b: {owner: a, strict: true, budget: none}\n"
	broken  = "service: a\ndependences: {}\n"
)

// The policy that serve starts with passes the gate.
func TestSamplePasses(t *testing.T) {
	if r := invoke(t, "", "check", "sample.yaml"); r.code != exitOK || r.errors != "" {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
}

func TestCheckExitCodes(t *testing.T) {
	pass, warn, fail, bad := file(t, "p.yaml", passing), file(t, "w.yaml", warned), file(t, "f.yaml", failing), file(t, "b.yaml", broken)
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"pass", []string{pass}, 0},
		{"warning", []string{warn}, 0},
		{"warning that fails", []string{"--fail-on", "warning", warn}, 1},
		{"error", []string{fail}, 1},
		{"flags behind the file", []string{fail, "-o", "json"}, 1},
		{"unreadable beside a good one", []string{pass, bad}, 2},
		{"unreadable beside a failing one", []string{fail, bad}, 2},
		{"not there", []string{pass + ".none"}, 2},
		{"no file", nil, 2},
		{"unknown format", []string{"-o", "xml", pass}, 2},
		{"over the amplification", []string{"--max-amplification", "1.1", pass}, 1},
		{"within the amplification", []string{"--max-amplification", "1.2", pass}, 0},
		{"over the duration", []string{"--max-duration", "5s", pass}, 1},
		{"checklist without metrics", []string{"--checklist", pass}, 1},
		{"missing baseline", []string{"--baseline", pass + ".none", pass}, 2},
		{"explain", []string{"--explain", "fc101"}, 0},
		{"explain nothing", []string{"--explain", "FC000"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := invoke(t, "", append([]string{"check"}, tt.args...)...); r.code != tt.code {
				t.Errorf("exit code %d, want %d: %s%s", r.code, tt.code, r.out, r.errors)
			}
		})
	}
}

func TestCheckFormats(t *testing.T) {
	dir, fail := t.TempDir(), file(t, "f.yaml", failing)
	out := func(name string) string { return filepath.Join(dir, name) }
	r := invoke(t, "", "check", "-o", "text", "-o", "json:"+out("j"), "-o", "sarif:"+out("s"),
		"-o", "github:"+out("g"), "-o", "junit:"+out("u"), "-o", "markdown:"+out("m"), fail)
	if r.code != exitFound || !strings.Contains(r.out, "[FC101 R-7]") {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(out(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var j struct {
		Schema   string
		Findings []struct{ ID, Fingerprint string }
	}
	if err := json.Unmarshal(read("j"), &j); err != nil || j.Schema != "forbear/report/v1" || len(j.Findings) != 1 || j.Findings[0].ID != "FC101" {
		t.Errorf("json: %v %+v", err, j)
	}
	var s struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID    string
				RuleIndex int
			}
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
		}
	}
	if err := json.Unmarshal(read("s"), &s); err != nil || s.Version != "2.1.0" {
		t.Fatalf("sarif: %v", err)
	}
	result := s.Runs[0].Results[0]
	if result.RuleID != "FC101" || s.Runs[0].Tool.Driver.Rules[result.RuleIndex].ID != "FC101" {
		t.Errorf("sarif: %+v", result)
	}
	if g := string(read("g")); !strings.HasPrefix(g, "::error file="+fail+",line=3,col=") || !strings.Contains(g, "title=FC101 R-7::") {
		t.Errorf("github: %s", g)
	}
	var u struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(read("u"), &u); err != nil || len(u.Suites) != 1 || u.Suites[0].Failures != 1 {
		t.Errorf("junit: %v %+v", err, u)
	}
	if m := string(read("m")); !strings.Contains(m, "| Dependency | Retry owner | Other layers |") || !strings.Contains(m, "| b | a |") {
		t.Errorf("markdown: %s", m)
	}
}

func TestBaseline(t *testing.T) {
	path := file(t, "f.yaml", failing)
	known := path + ".baseline"
	if r := invoke(t, "", "check", "--write-baseline", known, path); r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.errors)
	}
	// Lines that move do not make a finding new; another one is.
	if err := os.WriteFile(path, []byte("# moved\n"+failing), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, "", "check", "--baseline", known, path); r.code != exitOK || !strings.Contains(r.out, "known to the baseline") {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
	if err := os.WriteFile(path, []byte(failing+"  c: {strict: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, "", "check", "--baseline", known, path); r.code != exitFound {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
}

func TestChecklistScrapes(t *testing.T) {
	metrics := "# HELP retry_attempts_total x\nretry_attempts_total{a=\"b\"} 1\nretry_initial_requests_total 3\nretry_budget_utilization_ratio 0\n"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metrics)) }))
	defer up.Close()
	pass := file(t, "p.yaml", passing)
	if r := invoke(t, "", "check", "--checklist", "--metrics", up.URL, pass); r.code != exitOK || !strings.Contains(r.out, "17 yes") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
	metrics = "retry_attempts_total 1\n"
	if r := invoke(t, "", "check", "--checklist", "--metrics", up.URL, pass); r.code != exitFound || !strings.Contains(r.out, "2 no") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
	up.Close()
	if r := invoke(t, "", "check", "--checklist", "--metrics", up.URL, pass); r.code != exitUsage {
		t.Errorf("exit code %d without an answer, want 2", r.code)
	}
}

func TestRulesCommand(t *testing.T) {
	r := invoke(t, "", "rules", "list", "-o", "json")
	var list struct{ Rules []struct{ ID string } }
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != exitOK || len(list.Rules) < 40 {
		t.Errorf("exit code %d, %d rules: %v", r.code, len(list.Rules), err)
	}
}

func TestPolicyCommand(t *testing.T) {
	old, is := file(t, "old.yaml", passing), file(t, "new.yaml", strings.Replace(passing, "strict: true", "strict: true, max_retries: 5, per_attempt: 1s", 1))
	if r := invoke(t, "", "policy", "diff", old, is); r.code != exitFound || !strings.Contains(r.out, "a call to b is now tried up to 6 times, before 4") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
	if r := invoke(t, "", "policy", "diff", old, old); r.code != exitOK || r.out != "" {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errors)
	}
	if r := invoke(t, "", "policy", "schema"); r.code != exitOK || !json.Valid([]byte(r.out)) {
		t.Errorf("exit code %d", r.code)
	}
	if r := invoke(t, "", "policy", "payload", old, "W-1"); r.code != exitUsage {
		t.Errorf("exit code %d for a waiver that is not there", r.code)
	}
}

const orders = `{"openapi": "3.1.0", "info": {"title": "Order API"}, "servers": [{"url": "https://orders.internal/v1"}],
"paths": {"/orders": {"get": {}, "post": {"parameters": [{"$ref": "#/components/parameters/Key"}]}},
"/orders/{id}": {"patch": {"parameters": [{"name": "X", "in": "header"}]}}},
"components": {"parameters": {"Key": {"name": "idempotency-key", "in": "header"}}}}`

func TestInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	r := invoke(t, "", "init", "--service", "checkout", "--openapi", file(t, "orders.json", orders),
		"--dependency", "search=http://search.internal", "--file", path)
	if r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.errors)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  order-api:", "# PATCH /orders/{id} takes no Idempotency-Key", "idempotency: reuse     # some writes",
		"methods: [GET, POST, PATCH]", `url: "https://orders.internal/v1"`, "  search:",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file lacks %q:\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "POST /orders takes no") {
		t.Error("a keyed operation is marked")
	}
	if r := invoke(t, "", "check", path); r.code != exitOK {
		t.Errorf("the new file fails its check: %s", r.out)
	}
	if r := invoke(t, "", "init", "--file", path); r.code != exitUsage {
		t.Errorf("exit code %d: the file was replaced", r.code)
	}
}
