package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/forbear-go/forbear/lint/internal/table"
)

// TestFixes holds every fix to a golden file that compiles, against what the
// library's own package offers. A second run finds nothing more to mend.
func TestFixes(t *testing.T) {
	seen := map[string]bool{"wait for ctx too": false}
	for _, f := range table.BuiltinFixes() {
		seen[f.String()] = false
	}
	for _, name := range fixCases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			for _, m := range runFixes(t, name, nil) {
				seen[m] = true
			}
		})
	}
	for m, ok := range seen {
		if !ok {
			t.Errorf("no golden file shows the fix %q", m)
		}
	}
}

// TestSoakFixes does the same with the real libraries instead of the few lines
// that stand for them. It needs a module proxy.
func TestSoakFixes(t *testing.T) {
	if os.Getenv("FORBEAR_SOAK") == "" {
		t.Skip("downloads modules: FORBEAR_SOAK=1 runs it")
	}
	for _, name := range fixCases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			runFixes(t, name, func(dir string) {
				if err := os.RemoveAll(filepath.Join(dir, "lib")); err != nil {
					t.Fatal(err)
				}
				mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
				if err != nil {
					t.Fatal(err)
				}
				before, _, _ := strings.Cut(string(mod), "replace ")
				write(t, dir, "go.mod", before)
				goCommand(t, dir, "mod", "tidy")
			})
		})
	}
}

func fixCases(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/fixes/*.txtar")
	if err != nil || len(names) < 5 {
		t.Fatalf("got %v, %v; want the cases", names, err)
	}
	return names
}

// runFixes runs one case and returns what fixes were offered.
func runFixes(t *testing.T, name string, prepare func(dir string)) (messages []string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, want := map[string]string{}, ""
	for _, f := range archive.Files {
		if f.Name == "m.go.golden" {
			want = string(f.Data)
			continue
		}
		files[f.Name] = string(f.Data)
	}
	dir := module(t, files)
	if prepare != nil {
		prepare(dir)
	}
	code, out, errs := lintIn(t, dir, "-o", "json", ".")
	if code == ExitUnjudged {
		t.Fatalf("before: %s", errs)
	}
	var rep struct {
		Findings []struct{ Fixes []struct{ Message string } }
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Findings {
		for _, x := range f.Fixes {
			messages = append(messages, x.Message)
		}
	}
	for _, run := range []string{"first", "second"} {
		code, _, errs := lintIn(t, dir, "--fix", ".")
		if code == ExitUnjudged || run == "second" && !strings.Contains(errs, "0 fixes applied") {
			t.Errorf("%s run: got %d, %s", run, code, errs)
		}
		got, err := os.ReadFile(filepath.Join(dir, "m.go"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s run: got\n%s\nwant\n%s", run, got, want)
		}
	}
	goCommand(t, dir, "vet", ".")
	return messages
}

func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %v: %v\n%s", args, err, out)
	}
}

// TestNoFix: what would not compile with the version in use is not offered.
func TestNoFix(t *testing.T) {
	files := map[string]string{
		"again/again.go": `package again

import "time"

type (
	Options struct{ Min time.Duration; Jitter bool; Spread string }
	Backoff interface{ Next() time.Duration }
	Plain   struct{ Step int }
	Option  int
)

const Half = "half"

func (Plain) Next() time.Duration               { return 0 }
func (Plain) Jittered(f float64, n int) Plain   { return Plain{} }
func (Plain) Fixed()                            {}
func Random()                                   {}
func New() Plain                                { return Plain{} }
func Pair(b Backoff) (Backoff, error)           { return b, nil }
func Draw(b Backoff) Backoff                    { return b }
func Start(name string, b Backoff, o ...Option) {}
func Opt() Option                               { return 0 }
func Every(s string, d int)                     {}
`,
		"m.go": `package m

import "example.com/m/again"

var step = again.New().Step

func Use() { again.Start("x", again.New()) }

func Literal() any { return again.Options{Min: 1} }

func Method() { again.Plain{}.Fixed() }

func Value() { again.Every("x", 0) }
`,
	}
	const package_ = "libraries:\n- {package: [example.com/m/again], verdict: fixed, message: m, "
	for _, tt := range []struct {
		name, entry string
		want        int // fixes
	}{
		{"no such field", `literal: Options, fix: {field: "Spreads: 1"`, 0},
		{"another type of field", `literal: Options, fix: {field: "Spread: true"`, 0},
		{"a field that fits", `literal: Options, fix: {field: "Jitter: true"`, 1},
		{"a wrapper of two results", `call: New, fix: {wrap: Pair`, 0},
		{"a wrapper of another type, where that does not matter", `call: New, fix: {wrap: Draw`, 1}, // not of step
		{"a method with other parameters", `call: New, fix: {chain: "Jittered(0.5)"`, 0},
		{"a method that fits", `call: New, fix: {chain: "Jittered(0.5, 1)"`, 2},
		{"a function in the place of a method", `call: "Plain.Fixed", fix: {name: Random`, 0},
		{"a constant of another type", `call: Every, arg: 1, equals: 0, fix: {value: Half`, 0},
		{"an option", `call: New, fix: {option: "Opt()"`, 1},
		{"a wrong option", `call: New, fix: {option: "Opt"`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files[".forbear-lint.yaml"] = package_ + tt.entry + ", changes: c}}\n"
			dir := module(t, files)
			_, _, errs := lintIn(t, dir, "--all", "--fix", ".")
			if !strings.Contains(errs, fmt.Sprintf("%d fixes applied", tt.want)) {
				t.Errorf("got %q, want %d", errs, tt.want)
			}
			goCommand(t, dir, "vet", ".")
		})
	}
}
