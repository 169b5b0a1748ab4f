//forbear:plain it waits for the go command, and package lint runs the judging of packages at once
package driver

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/internal/testkit/sarifcheck"
)

// module writes a module of one package and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if files["go.mod"] == "" {
		files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lint runs Main in dir, out of reach of any workspace.
func lintIn(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-trimpath")
	var out, errs bytes.Buffer
	code = Main(t.Context(), nil, append([]string{"-C", dir, "-q"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

const fixedRetry = `package m

import (
	"context"
	"net/http"
	"time"
)

func Fetch(ctx context.Context, url string) (err error) {
	for attempt := 0; attempt < 3; attempt++ {
		var resp *http.Response
		if resp, err = http.Get(url); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return err
}
`

const clean = `package m

func Add(a, b int) int { return a + b }
`

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name   string
		source string
		args   []string
		code   int
		want   string // in stdout or stderr
	}{
		{"clean", clean, nil, ExitPass, "no findings in 1 package\n"},
		{"findings", fixedRetry, nil, ExitFindings, "m.go:10:2: error: retries http.Get on failure and waits 1s every time [FB1001 R-1; confidence high]"},
		{"type error", "package m\n\nvar x int = \"a\"\n", nil, ExitUnjudged, "cannot use"},
		{"syntax error", "package m\n\nfunc {\n", nil, ExitUnjudged, "expected"},
		{"missing import", "package m\n\nimport _ \"example.com/nowhere\"\n", nil, ExitUnjudged, "example.com/nowhere"},
		{"no such package", clean, []string{"./nowhere"}, ExitUnjudged, "nowhere"},
		{"bad flag", clean, []string{"--nonsense"}, ExitUnjudged, "nonsense"},
		{"bad format", clean, []string{"-o", "yaml"}, ExitUnjudged, "yaml"},
		{"missing baseline", clean, []string{"--baseline", "/nonexistent"}, ExitUnjudged, "nonexistent"},
		{"unknown rule", clean, []string{"--explain", "FB9999"}, ExitUnjudged, "FB9999"},
		{"explain", clean, []string{"--explain", "FB1001"}, ExitPass, "fixed-interval retry"},
		{"rules", clean, []string{"--rules"}, ExitPass, "FB1055"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := module(t, map[string]string{"m.go": tt.source})
			code, out, errs := lintIn(t, dir, tt.args...)
			if code != tt.code {
				t.Errorf("got exit code %d, want %d\n%s%s", code, tt.code, out, errs)
			}
			if !strings.Contains(out+errs, tt.want) {
				t.Errorf("got %q and %q, want it to contain %q", out, errs, tt.want)
			}
		})
	}
}

// TestBrokenCodeIsReported: the reports that were asked for say that nothing was
// judged. An old or a missing one would look like a pass.
func TestBrokenCodeIsReported(t *testing.T) {
	dir := module(t, map[string]string{"m.go": "package m\n\nvar x int = \"a\"\n"})
	sarif, text := filepath.Join(dir, "m.sarif"), filepath.Join(dir, "m.txt")
	code, out, errs := lintIn(t, dir, "-o", "json", "-o", "sarif:"+sarif, "-o", "text:"+text)
	if code != ExitUnjudged || !strings.Contains(errs, "cannot use") {
		t.Errorf("got %d, %q; want %d and the fault", code, errs, ExitUnjudged)
	}
	var got struct{ Problems []report.Problem }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if len(got.Problems) != 2 || got.Problems[0].File != "m.go" || got.Problems[0].Line != 3 || got.Problems[0].Column != 13 ||
		got.Problems[0].Kind != report.Faulty || !got.Problems[0].Fatal || !strings.Contains(got.Problems[0].Message, "cannot use") {
		t.Errorf("got %+v, want the fault at its place", got.Problems)
	}
	log, err := os.ReadFile(sarif)
	if err != nil {
		t.Fatal(err)
	}
	if err := sarifcheck.Check(log); err != nil {
		t.Error(err)
	}
	if !bytes.Contains(log, []byte(`"executionSuccessful": false`)) || !bytes.Contains(log, []byte(`"id": "forbear/lint/example.com/m"`)) {
		t.Errorf("got\n%s", log)
	}
	if got, err := os.ReadFile(text); err != nil || !strings.Contains(string(got), "m.go:3:13: faulty: cannot use") || !strings.Contains(string(got), "no package was judged") {
		t.Errorf("got %q, %v; want the fault, and that nothing was judged", got, err)
	}
}

func TestJSON(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	_, out, _ := lintIn(t, dir, "-o", "json")
	var got struct {
		Schema, Tool string
		Findings     []report.Finding
		Details      struct {
			Module  string
			Failing int
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != report.JSONVersion || got.Tool != "lint" || got.Details.Module != "example.com/m" || got.Details.Failing != 2 {
		t.Errorf("got schema %q of %q, module %q, %d failing; want 2 in example.com/m (FB1001, FB1020)", got.Schema, got.Tool, got.Details.Module, got.Details.Failing)
	}
	if len(got.Findings) == 0 || got.Findings[0].File != "m.go" || len(got.Findings[0].Related) == 0 {
		t.Errorf("got %+v, want a finding in m.go with related places", got.Findings)
	}
}

// TestSARIF: what the linter writes is SARIF, with rules, help, related places,
// fixes and fingerprints that do not depend on lines.
func TestSARIF(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	read := func() (text string, fingerprints []string) {
		_, out, _ := lintIn(t, dir, "-o", "sarif", "--all")
		if err := sarifcheck.Check([]byte(out)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		for line := range strings.Lines(out) {
			if strings.Contains(line, `"forbear/v1"`) {
				fingerprints = append(fingerprints, strings.TrimSpace(line))
			}
		}
		return out, fingerprints
	}
	text, before := read()
	for _, want := range []string{
		`"ruleId": "FB1001"`, `"relatedLocations"`, `"fixes"`, `"helpUri": "https://github.com/forbear-go/forbear/blob/main/lint/RULES.md#fb1001"`,
		`"markdown"`, `"fullyQualifiedName": "example.com/m.Fetch"`, `"confidence": "high"`, `"id": "forbear/lint/example.com/m"`, `"uri": "m.go"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing from\n%s", want, text)
		}
	}
	write(t, dir, "m.go", strings.Replace(fixedRetry, "func Fetch", "\n\n// Fetch fetches.\nfunc Fetch", 1))
	if _, after := read(); len(before) < 3 || !slices.Equal(before, after) {
		t.Errorf("got fingerprints %v after moving lines, before %v", after, before)
	}
}

func TestGitHubAndJUnit(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	junit := filepath.Join(dir, "out.xml")
	_, out, _ := lintIn(t, dir, "-o", "github", "-o", "junit:"+junit)
	if !strings.Contains(out, "::error file=m.go,line=10,col=2,title=FB1001 R-1::retries http.Get") {
		t.Errorf("got %q, want a workflow command", out)
	}
	src, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(src, new(struct{})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(src), `name="m.go" tests="2" failures="2"`) {
		t.Errorf("got %s, want one suite of 2 tests with 2 failures", src)
	}
}

// TestBaseline: accepted findings pass, also after their lines have moved; a
// new one fails.
func TestBaseline(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	base := filepath.Join(dir, "baseline.json")
	if code, out, errs := lintIn(t, dir, "--write-baseline", base); code != ExitPass {
		t.Fatalf("write: got %d: %s%s", code, out, errs)
	}
	moved := strings.Replace(fixedRetry, "func Fetch", "\n\n// Fetch fetches.\nfunc Fetch", 1)
	write(t, dir, "m.go", moved)
	if code, out, errs := lintIn(t, dir, "--baseline", base); code != ExitPass {
		t.Errorf("moved: got %d, want %d\n%s%s", code, ExitPass, out, errs)
	}
	write(t, dir, "n.go", strings.ReplaceAll(fixedRetry, "Fetch", "Other"))
	if code, out, _ := lintIn(t, dir, "--baseline", base); code != ExitFindings || strings.Contains(out, "m.go") {
		t.Errorf("added: got %d and %q, want %d and n.go alone", code, out, ExitFindings)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFix(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	lintIn(t, dir, "--fix")
	got, err := os.ReadFile(filepath.Join(dir, "m.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "time.Sleep(rand.N(2 * time.Second))") {
		t.Errorf("got\n%s\nwant a random wait", got)
	}
	code, out, errs := lintIn(t, dir)
	if strings.Contains(out, "FB1001") || code == ExitUnjudged {
		t.Errorf("after the fix: got %d\n%s%s", code, out, errs)
	}
}
