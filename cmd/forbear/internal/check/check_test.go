package check

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

const (
	passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"
	warned  = "service: a\ndependencies:\n  b: {owner: a, budget: {min_retries: 9}}\n"
	failing = "service: a\ndependencies:\n  b: {owner: a, strict: true, budget: none}\n"
	broken  = "service: a\ndependences: {}\n"
)

// The policy that serve starts with passes the gate.
func TestSamplePasses(t *testing.T) {
	if r := clitest.Run(t, Command(), "", "../serve/sample.yaml"); r.Code != cli.ExitOK || r.Errors != "" {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}

func TestCheckExitCodes(t *testing.T) {
	pass, warn, fail, bad := clitest.File(t, "p.yaml", passing), clitest.File(t, "w.yaml", warned), clitest.File(t, "f.yaml", failing), clitest.File(t, "b.yaml", broken)
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
		{"unknown format of the files", []string{"--from", "nginxx", pass}, 2},
		{"over the amplification", []string{"--max-amplification", "1.1", pass}, 1},
		{"within the amplification", []string{"--max-amplification", "1.2", pass}, 0},
		{"no amplification at all", []string{"--max-amplification", "NaN", pass}, 2},
		{"negative amplification", []string{"--max-amplification", "-1", pass}, 2},
		{"negative duration", []string{"--max-duration", "-1s", pass}, 2},
		{"over the duration", []string{"--max-duration", "5s", pass}, 1},
		{"checklist without metrics", []string{"--checklist", pass}, 1},
		{"missing baseline", []string{"--baseline", pass + ".none", pass}, 2},
		{"explain", []string{"--explain", "fc101"}, 0},
		{"explain nothing", []string{"--explain", "FC000"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := clitest.Run(t, Command(), "", tt.args...); r.Code != tt.code {
				t.Errorf("exit code %d, want %d: %s%s", r.Code, tt.code, r.Out, r.Errors)
			}
		})
	}
}

// Policies that differ are simulated at once: the race detector sees what they share.
func TestPoliciesAtOnce(t *testing.T) {
	var file strings.Builder
	file.WriteString("service: a\ndependencies:\n")
	for n := range 4 {
		fmt.Fprintf(&file, "  b%d: {owner: a, methods: [GET], max_retries: %d, breaker: {failure_rate: 0.%d, min_calls: 21}}\n", n, n+1, n+3)
	}
	if r := clitest.Run(t, Command(), "", "--checklist", clitest.File(t, "p.yaml", file.String())); r.Code == cli.ExitUsage {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}

func TestCheckFormats(t *testing.T) {
	dir, fail := t.TempDir(), clitest.File(t, "f.yaml", failing)
	out := func(name string) string { return filepath.Join(dir, name) }
	r := clitest.Run(t, Command(), "", "-o", "text", "-o", "json:"+out("j"), "-o", "sarif:"+out("s"),
		"-o", "github:"+out("g"), "-o", "junit:"+out("u"), "-o", "markdown:"+out("m"), fail)
	if r.Code != cli.ExitFound || !strings.Contains(r.Out, "[FC101 R-7]") {
		t.Fatalf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
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
	path := clitest.File(t, "f.yaml", failing)
	known := path + ".baseline"
	if r := clitest.Run(t, Command(), "", "--write-baseline", known, path); r.Code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", r.Code, r.Errors)
	}
	// Lines that move do not make a finding new; another one is.
	if err := os.WriteFile(path, []byte("# moved\n"+failing), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(t, Command(), "", "--baseline", known, path); r.Code != cli.ExitOK || !strings.Contains(r.Out, "in the baseline") {
		t.Errorf("exit code %d: %s", r.Code, r.Out)
	}
	if err := os.WriteFile(path, []byte(failing+"  c: {strict: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(t, Command(), "", "--baseline", known, path); r.Code != cli.ExitFound {
		t.Errorf("exit code %d: %s", r.Code, r.Out)
	}
}

func TestChecklistScrapes(t *testing.T) {
	metrics := "# HELP retry_attempts_total x\nretry_attempts_total{a=\"b\"} 1\nretry_initial_requests_total 3\nretry_budget_utilization_ratio 0\n"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metrics)) }))
	defer up.Close()
	pass := clitest.File(t, "p.yaml", passing)
	if r := clitest.Run(t, Command(), "", "--checklist", "--metrics", up.URL, pass); r.Code != cli.ExitOK || !strings.Contains(r.Out, "17 yes") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	metrics = "retry_attempts_total 1\n"
	if r := clitest.Run(t, Command(), "", "--checklist", "--metrics", up.URL, pass); r.Code != cli.ExitFound || !strings.Contains(r.Out, "2 no") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	up.Close()
	if r := clitest.Run(t, Command(), "", "--checklist", "--metrics", up.URL, pass); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d without an answer, want 2", r.Code)
	}
}

func TestRulesCommand(t *testing.T) {
	r := clitest.Run(t, RulesCommand(), "", "list", "-o", "json")
	var list struct{ Rules []struct{ ID string } }
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil || r.Code != cli.ExitOK || len(list.Rules) < 40 {
		t.Errorf("exit code %d, %d rules: %v", r.Code, len(list.Rules), err)
	}
}
