package driver

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/internal/testkit/sarifcheck"
)

// halfBroken is a module of which some packages do not compile.
func halfBroken(t *testing.T) string {
	in := func(pkg, text string) string { return strings.Replace(text, "package m", "package "+pkg, 1) }
	return module(t, map[string]string{
		"good/good.go":     in("good", fixedRetry),
		"types/types.go":   "package types\n\nvar Text int = \"text\"\n\nvar Lost = nowhere\n\nvar Fine = 1\n",
		"syntax/syntax.go": "package syntax\n\nfunc {\n\nvar Late = 1\n",
		"lacks/lacks.go":   "package lacks\n\nimport _ \"example.com/nowhere/x\"\n",
		"embeds/embeds.go": in("embeds", strings.NewReplacer("\"context\"", "\"context\"\n\t_ \"embed\"", "func Fetch", "//go:embed none.txt\nvar text string\n\nfunc Fetch").Replace(fixedRetry)),
		// These import a package that does not compile. What they need of it has a type
		// in the first two, one by one more package; the others need what is lost.
		"uses/uses.go":     in("uses", strings.Replace(fixedRetry, "time\"\n)", "time\"\n\n\t\"example.com/m/types\"\n)\n\nvar Fine = types.Fine\n", 1)),
		"twice/twice.go":   in("twice", strings.Replace(fixedRetry, "time\"\n)", "time\"\n\n\t\"example.com/m/uses\"\n)\n\nvar Fine = uses.Fine\n", 1)),
		"needs/needs.go":   "package needs\n\nimport \"example.com/m/types\"\n\nvar Lost = types.Lost\n",
		"needed/needed.go": "package needed\n\nimport \"example.com/m/syntax\"\n\nvar X = syntax.None\n",
	})
}

// TestBrokenPackages: what does not compile is reported in the words of the go
// command, and everything that can be checked is judged all the same.
func TestBrokenPackages(t *testing.T) {
	code, out, errs := lintIn(t, halfBroken(t))
	if code != ExitUnjudged {
		t.Errorf("got exit code %d, want %d", code, ExitUnjudged)
	}
	const want = `embeds/embeds.go:10:12: pattern none.txt: no matching files found
lacks/lacks.go:3:8: no required module provides package example.com/nowhere/x; to add it: go get example.com/nowhere/x
syntax/syntax.go:3:6: syntax error: unexpected {, expected name or (
types/types.go:3:16: cannot use "text" (untyped string constant) as int value in variable declaration
types/types.go:5:12: undefined: nowhere
forbear lint: not judged: 5 packages, which do not compile or import one that does not: ` +
		"example.com/m/lacks, example.com/m/needed, example.com/m/needs, example.com/m/syntax, example.com/m/types\n"
	if errs != want {
		t.Errorf("got on standard error\n%s\nwant\n%s", errs, want)
	}
	for _, want := range []string{"good/good.go:10:2: error: ", "uses/uses.go:15:2: error: ", "twice/twice.go:15:2: error: ", "embeds/embeds.go:14:2: error: ", "4 packages, ", "; 5 packages not judged"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q in it", out, want)
		}
	}
	if strings.Contains(out, "faulty") {
		t.Errorf("got\n%s\nwant the faults on standard error only", out)
	}
}

// TestBrokenPackagesInReports: no format looks like that of clean code, and all
// have the findings of the rest.
func TestBrokenPackagesInReports(t *testing.T) {
	dir := halfBroken(t)
	read := func(format string) string {
		file := filepath.Join(dir, "report."+format)
		if code, _, errs := lintIn(t, dir, "-o", format+":"+file); code != ExitUnjudged {
			t.Errorf("%s: got %d\n%s", format, code, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	wants := map[string][]string{
		"text":   {"good/good.go:10:2: error: ", "types/types.go:5:12: faulty: undefined: nowhere\n", "not judged: 5 packages, "},
		"json":   {`"file": "good/good.go"`, `"message": "undefined: nowhere"`, `"example.com/m/needs"`, `"fatal_problem": 6`},
		"sarif":  {`"uri": "good/good.go"`, `"executionSuccessful": false`, `"uri": "types/types.go"`},
		"github": {"::error file=good/good.go,line=10", "::error file=types/types.go,line=5,col=12,title=faulty::undefined: nowhere", "::error title=not judged::5 packages"},
		"junit":  {`<testsuite name="good/good.go"`, `<error type="faulty" message="undefined: nowhere"`, `<error type="unjudged"`},
	}
	for format, want := range wants {
		text := read(format)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is missing from\n%s", format, w, text)
			}
		}
		switch format {
		case "sarif":
			if err := sarifcheck.Check([]byte(text)); err != nil {
				t.Error(err)
			}
		case "junit":
			if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBrokenBaseline: a baseline of a part of a module would call the findings
// of the rest new.
func TestBrokenBaseline(t *testing.T) {
	dir := halfBroken(t)
	base := filepath.Join(dir, "baseline.json")
	code, _, errs := lintIn(t, dir, "--write-baseline", base)
	if _, err := os.Stat(base); err == nil || code != ExitUnjudged || !strings.Contains(errs, "was not written") {
		t.Errorf("got %d and %q, file %v; want %d and no file", code, errs, err, ExitUnjudged)
	}
}

// TestNothingListed: when the go command lists nothing, the reports say so.
func TestNothingListed(t *testing.T) {
	dir := module(t, map[string]string{"m.go": clean, "go.mod": "module example.com/m\n\ngo 1.26\n\nrequire example.com/nowhere v1.0.0-\n"})
	code, out, errs := lintIn(t, dir, "-o", "json")
	var got struct{ Problems []report.Problem }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if code != ExitUnjudged || len(got.Problems) == 0 || !got.Problems[0].Fatal || !strings.HasPrefix(errs, "forbear lint: could not judge: go: errors parsing go.mod:\n") {
		t.Errorf("got %d, %q and problems %v; want %d and the fault in go.mod", code, errs, got.Problems, ExitUnjudged)
	}
}

// TestMissingModule: a package that needs a module that cannot be had is named, and
// the others are judged.
func TestMissingModule(t *testing.T) {
	dir := module(t, map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.26\n\nrequire example.com/nowhere v1.0.0\n",
		"good/good.go": strings.Replace(fixedRetry, "package m", "package good", 1),
		"bad/bad.go":   "package bad\n\nimport _ \"example.com/nowhere/x\"\n",
	})
	for _, flags := range []string{"-trimpath -mod=mod", "-trimpath"} {
		t.Setenv("GOPROXY", "off")
		t.Setenv("GOWORK", "off")
		t.Setenv("GOFLAGS", flags)
		var out, errs bytes.Buffer
		code := Main(t.Context(), nil, []string{"-C", dir, "-q", "./..."}, &out, &errs)
		if code != ExitUnjudged || !strings.Contains(out.String(), "good/good.go:10:2: error: ") || !strings.Contains(errs.String(), "bad/bad.go:3:8: ") ||
			!strings.Contains(errs.String(), "not judged: 1 package, which does not compile or imports one that does not: example.com/m/bad\n") {
			t.Errorf("GOFLAGS=%s: got %d\n%s%s\nwant the finding in good, and bad named", flags, code, &out, &errs)
		}
	}
}

// TestFactsOfOtherPackages: what a function does counts in the packages that call it,
// also where they alone are asked for, and where the way there leads through another
// module of the workspace.
func TestFactsOfOtherPackages(t *testing.T) {
	const caller = "package top\n\nimport (\n\t\"net/http\"\n\n\t\"PATH\"\n)\n\n" +
		"func Fetch(url string) (err error) {\n\tfor range 3 {\n\t\tvar resp *http.Response\n\t\tif resp, err = http.Get(url); err == nil {\n\t\t\treturn resp.Body.Close()\n\t\t}\n\t\tCALL\n\t}\n\treturn err\n}\n"
	dir := module(t, map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.26\n\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n",
		"base/base.go": "package base\n\nimport \"time\"\n\ntype T struct{}\n\n// Pause waits.\nfunc (T) Pause() { time.Sleep(time.Second) }\n\nfunc Pause() { T{}.Pause() }\n",
		"top/top.go":   strings.NewReplacer("PATH", "example.com/m/base", "CALL", "base.Pause()").Replace(caller),
		"far/far.go":   strings.NewReplacer("PATH", "example.com/other", "CALL", "other.New().Pause()").Replace(caller),
		"other/go.mod": "module example.com/other\n\ngo 1.26\n\nrequire example.com/m v0.0.0\n", "other/other.go": "package other\n\nimport \"example.com/m/base\"\n\nfunc New() base.T { return base.T{} }\n",
	})
	for _, args := range [][]string{{"./..."}, {"./top", "./far"}, {"./top", "./far", "./base"}} {
		_, out, errs := lintIn(t, dir, args...)
		for _, want := range []string{"top/top.go:10:2: error: ", "far/far.go:10:2: error: "} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: got\n%s%s\nwant %s", args, out, errs, want)
			}
		}
	}
}

// TestPanic: a package on which an analyzer panics is named, and the others are
// judged.
func TestPanic(t *testing.T) {
	first := analyzers()[0]
	run := first.Run
	t.Cleanup(func() { first.Run = run })
	first.Run = caught(first.Name, func(pass *analysis.Pass) (any, error) {
		if pass.Pkg.Name() == "odd" {
			panic("oh")
		}
		return run(pass)
	})
	dir := module(t, map[string]string{"m.go": fixedRetry, "odd/odd.go": strings.Replace(fixedRetry, "package m", "package odd", 1)})
	code, out, errs := lintIn(t, dir, "-o", "json")
	if code != ExitUnjudged || !strings.Contains(out, `"file": "m.go"`) || strings.Contains(out, `"file": "odd/odd.go"`) ||
		!strings.Contains(out, `"message": "package example.com/m/odd: fb1001 panicked: oh`) || !strings.Contains(errs, "load_test.go") {
		t.Errorf("got %d\n%s%s\nwant m.go judged, and the panic with its stack", code, out, errs)
	}
}

// Outside of a module the first thing to do is named.
func TestNoModule(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := lintIn(t, dir)
	if code != ExitUnjudged || !strings.Contains(out+errs, "there is no Go module here: run go mod init first") {
		t.Errorf("got %d, %s%s", code, out, errs)
	}
}
