package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// TestFixes holds every fix to a golden file that compiles, against what the
// library's own package offers. A second run finds nothing more to mend.
func TestFixes(t *testing.T) {
	seen := map[string]bool{"wait for ctx too": false}
	for _, f := range table.BuiltinFixes() {
		seen[f.String()] = false
	}
	for _, cases := range together(goldens(t, "testdata/fixes")) {
		for _, m := range fixes(t, cases, shared(t, cases)) {
			seen[m] = true
		}
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
	ringtest.OnlyNightly(t, "downloads modules")
	for _, c := range goldens(t, "testdata/fixes") {
		t.Run(c.name, func(t *testing.T) {
			dir := shared(t, []*golden{c})
			if err := os.RemoveAll(filepath.Join(dir, c.name, "lib")); err != nil {
				t.Fatal(err)
			}
			before, _, _ := strings.Cut(read(t, dir, "go.mod"), "replace ")
			write(t, dir, "go.mod", before)
			goCommand(t, dir, "mod", "tidy")
			fixes(t, []*golden{c}, dir)
		})
	}
}

// fixes mends the cases of a module and returns what fixes were offered.
func fixes(t *testing.T, cases []*golden, dir string) (messages []string) {
	t.Helper()
	code, out, errs := lintIn(t, dir, "-o", "json", "./...")
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
		code, _, errs := lintIn(t, dir, "--fix", "./...")
		if code == ExitUnjudged || run == "second" && !strings.Contains(errs, "0 fixes applied") {
			t.Errorf("%s run: got %d, %s", run, code, errs)
		}
		for _, c := range cases {
			for name, want := range c.want() {
				if got := read(t, dir, name); got != want {
					t.Errorf("%s, %s run: got\n%s\nwant\n%s", name, run, got, want)
				}
			}
		}
	}
	goCommand(t, dir, "vet", "./...")
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
func (Plain) Twice() Plain                      { return Plain{} }
func Random()                                   {}
func New() Plain                                { return Plain{} }
func Pair(b Backoff) (Backoff, error)           { return b, nil }
func Draw(b Backoff) Backoff                    { return b }
func Start(name string, b Backoff, o ...Option) {}
func Named(p Plain) (string, Backoff)           { return "", p }
func Opt() Option                               { return 0 }
func Every(s string, d int)                     {}
`,
		"m.go": `package m

import "example.com/m/again"

var step = again.New().Step

func Use() { again.Start("x", again.New()) }

func All() { again.Start(again.Named(again.Plain{}.Twice())) }

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
		{"an option behind a call of all arguments", `call: "Plain.Twice", fix: {option: "Opt()"`, 0},
		{"a wrong option", `call: New, fix: {option: "Opt"`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files[".forbear-lint.yaml"] = package_ + tt.entry + ", changes: c}}\n"
			dir := module(t, files)
			_, _, errs := lintIn(t, dir, "--all", "--fix", ".")
			if want := fmt.Sprintf("forbear lint: %d fixes applied\n", tt.want); errs != want {
				t.Errorf("got %q, want %q", errs, want)
			}
			if tt.want > 0 {
				goCommand(t, dir, "vet", ".")
			}
		})
	}
}

// TestFixLeavesTheRest: a fix changes no other line, whether the file is formatted or
// not and whatever its lines end with, and neither a link nor the permissions.
func TestFixLeavesTheRest(t *testing.T) {
	const odd = "\nvar   Odd = map[string]int{ \"a\":1 }\n"
	for _, tt := range []struct{ name, source string }{
		{"formatted", fixedRetry},
		{"not formatted", fixedRetry + odd},
		{"carriage returns", strings.ReplaceAll(fixedRetry, "\n", "\r\n")},
		{"carriage returns, not formatted", strings.ReplaceAll(fixedRetry+odd, "\n", "\r\n")},
		{"some carriage returns", strings.Replace(fixedRetry, "\n", "\r\n", 4)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := module(t, map[string]string{"m.txt": tt.source})
			if err := os.Chmod(filepath.Join(dir, "m.txt"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("m.txt", filepath.Join(dir, "m.go")); err != nil {
				t.Fatal(err)
			}
			lintIn(t, dir, "--fix")
			got := read(t, dir, "m.txt")
			if !strings.Contains(got, "<-ctx.Done()") {
				t.Fatalf("got\n%s\nwant it mended", got)
			}
			gone := 0
			for line := range strings.Lines(tt.source) {
				if !strings.Contains(got, line) {
					gone++
				}
			}
			if gone > 1 { // the sleep
				t.Errorf("got\n%q\nwhich lacks %d lines", got, gone)
			}
			if st, err := os.Lstat(filepath.Join(dir, "m.txt")); err != nil || st.Mode() != 0o640 {
				t.Errorf("got %v, %v; want a file of mode 0640", st.Mode(), err)
			}
			if st, err := os.Lstat(filepath.Join(dir, "m.go")); err != nil || st.Mode()&os.ModeSymlink == 0 {
				t.Errorf("got %v, %v; want the link", st.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".m.*")); len(left) > 0 {
				t.Errorf("got %v beside it", left)
			}
		})
	}
}

// TestFixOfChangedFile: edits are not made in a file that is not the one that was
// judged.
func TestFixOfChangedFile(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	t.Setenv("GOWORK", "off")
	o, err := parseArgs(nil, []string{"-C", dir, "--fix"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	v, err := o.judge(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	rep := o.report(v, nil, nil)
	changed := strings.Replace(fixedRetry, "attempt < 3", "attempt < 4", 1)
	write(t, dir, "m.go", changed)
	_, err = applyFixes(rep.Findings, v.loaded)
	if got := read(t, dir, "m.go"); err == nil || !strings.Contains(err.Error(), "has changed since") || got != changed {
		t.Errorf("got %v and\n%s\nwant an error, and the file as it was", err, got)
	}
}

// TestIdentityOfModule: in a workspace, what else is judged does not change what a
// baseline knows a finding by.
func TestIdentityOfModule(t *testing.T) {
	dir := module(t, map[string]string{
		"a/go.mod": "module example.com/a\n\ngo 1.26\n", "a/a.go": strings.Replace(fixedRetry, "package m", "package a", 1),
		"b/go.mod": "module example.com/b\n\ngo 1.26\n", "b/b.go": strings.Replace(fixedRetry, "package m", "package b", 1),
		"go.work": "go 1.26\n\nuse (\n\t./a\n\t./b\n)\n",
	})
	prints := func(patterns ...string) (list []string) {
		t.Setenv("GOWORK", filepath.Join(dir, "go.work"))
		t.Setenv("GOFLAGS", "")
		var out, errs bytes.Buffer
		Main(t.Context(), nil, append([]string{"-C", dir, "-q", "-o", "json"}, patterns...), &out, &errs)
		var rep struct {
			Findings []struct{ File, Fingerprint string }
		}
		if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		for _, f := range rep.Findings {
			if f.File == "b/b.go" {
				list = append(list, f.Fingerprint)
			}
		}
		return list
	}
	if both, one := prints("./a", "./b"), prints("./b"); len(one) == 0 || !slices.Equal(both, one) {
		t.Errorf("got %v beside another module, %v alone", both, one)
	}
}

// TestFixShowsWhatIsLeft: what a fix has not mended is shown where it is now.
func TestFixShowsWhatIsLeft(t *testing.T) {
	dir := module(t, map[string]string{"m.go": strings.Replace(fixedRetry, "http.Get(url)", `http.Post(url, "", nil)`, 1)})
	code, out, errs := lintIn(t, dir, "--fail-on", "medium")
	if !strings.Contains(out, "m.go:10:2: error: retries POST") || !strings.Contains(out, "3 findings, 3 of them fail; for 2 there is a fix (--fix)\n") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	code, out, errs = lintIn(t, dir, "--fail-on", "medium", "--fix")
	if code != ExitFindings || !strings.Contains(out, "m.go:11:2: error: retries POST") || !strings.Contains(out, "1 finding, 1 of them fails\n") {
		t.Errorf("with --fix: got %d\n%s%s\nwant what is left, a line further down", code, out, errs)
	}
}

// TestImports: an edit that is made by two findings is one where it adds imports, and
// else two.
func TestImports(t *testing.T) {
	for text, want := range map[string]bool{
		"\"io\"\n\t": true, "\n\nimport (\n\t\"io\"\n\tmathrand \"math/rand\"\n)": true,
		"": false, "\n": false, `key := "io"`: false, `f("io"`: false, "key := uuid.NewString()\n": false,
	} {
		if got := imports(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
