package driver

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSingle: a flag that would have no part in what is asked is refused, so that no
// one takes its silence for an answer.
func TestSingle(t *testing.T) {
	for _, tt := range []struct {
		args, want string
	}{
		{"--explain FB1001 --fix", "--explain does not use --fix: drop it"},
		{"--explain FB1001 ./...", "--explain judges no packages: drop ./..."},
		{"--rules -o json", ""},
		{"--rules -o json --all", "--rules does not use --all: drop it"},
		{"--print-settings --since HEAD", "--print-settings does not use --since: drop it"},
		{"--print-settings --config x.yaml", ""},
		{"--explain-finding a.go:3 -o json", "--explain-finding does not use -o: drop it"},
		{"--explain-finding a.go:3 --tags x -p 2 -q", ""},
		{"--fix ./...", ""},
	} {
		_, err := parseArgs(nil, strings.Fields(tt.args), t.Output())
		if got := ""; err != nil {
			if got = err.Error(); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.args, got, tt.want)
			}
		} else if tt.want != "" {
			t.Errorf("%s: got no error, want %q", tt.args, tt.want)
		}
	}
}

// TestDashes: what stands behind two dashes is a package, whatever it looks like.
func TestDashes(t *testing.T) {
	o, err := parseArgs(nil, []string{"--all", "./a", "--", "--fix", "./b", "-q"}, t.Output())
	if err != nil || o.fix || o.quiet || !slices.Equal(o.patterns, []string{"./a", "--fix", "./b", "-q"}) {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestHelp shows no example of flags that the program does not have.
func TestHelp(t *testing.T) {
	reader := func(string, string) (*Policy, error) { return nil, nil }
	for _, r := range []PolicyReader{nil, reader} {
		var out, errs bytes.Buffer
		if code := Main(t.Context(), r, []string{"--help"}, &out, &errs); code != ExitPass {
			t.Errorf("got %d, %s", code, &errs)
		}
		if got := strings.Contains(out.String(), "--policy deploy"); got != (r != nil) {
			t.Errorf("got %v in\n%s", got, &out)
		}
	}
}

// TestSettingsAtFault: a report that was asked for says that nothing was judged,
// and that of an earlier run does not stay.
func TestSettingsAtFault(t *testing.T) {
	dir := module(t, map[string]string{"m.go": clean})
	file := filepath.Join(dir, "m.xml")
	if code, _, errs := lintIn(t, dir, "-o", "junit:"+file); code != ExitPass {
		t.Fatalf("got %d, %s", code, errs)
	}
	write(t, dir, ".forbear-lint.yaml", "disabled: [FB1001]\n")
	code, out, _ := lintIn(t, dir, "-o", "junit:"+file, "-o", "json")
	if got := read(t, dir, "m.xml"); code != ExitUnjudged || !strings.Contains(got, "<error ") || !strings.Contains(got, "did you mean disable?") || !strings.Contains(out, `"fatal_problem": 1`) {
		t.Errorf("got %d and\n%s\n%s\nwant the fault in both", code, got, out)
	}
}

// TestAnnotations: the runner looks for files from the root of the checkout, wherever
// the linter runs.
func TestAnnotations(t *testing.T) {
	dir := module(t, map[string]string{"sub/go.mod": "module example.com/sub\n\ngo 1.26\n", "sub/m.go": fixedRetry})
	t.Setenv("GITHUB_WORKSPACE", "")
	t.Chdir(dir)
	want := "::error file=sub/m.go,line=10,"
	if _, out, _ := lintIn(t, "sub", "-o", "github"); !strings.Contains(out, want) {
		t.Errorf("got %s, want %s", out, want)
	}
	t.Setenv("GITHUB_WORKSPACE", dir)
	t.Chdir(filepath.Join(dir, "sub"))
	if _, out, _ := lintIn(t, ".", "-o", "github"); !strings.Contains(out, want) {
		t.Errorf("from below: got %s, want %s", out, want)
	}
	write(t, dir, "sub/m.go", "package m\n\nvar x int = \"\"\n")
	if _, out, _ := lintIn(t, ".", "-o", "github"); !strings.Contains(out, "::error file=sub/m.go,line=3,") {
		t.Errorf("a fault: got %s", out)
	}
	t.Setenv("GITHUB_WORKSPACE", os.TempDir()+"/nowhere")
	if _, out, _ := lintIn(t, ".", "-o", "github"); !strings.Contains(out, "::error file=m.go,line=3,") {
		t.Errorf("elsewhere: got %s", out)
	}
}

// TestLineDirective: a file is a test or an example by its own name, whatever a line
// directive in it says.
func TestLineDirective(t *testing.T) {
	dir := module(t, map[string]string{"m.go": strings.Replace(fixedRetry, "func Fetch", "//line made_test.go:1\nfunc Fetch", 1)})
	if _, out, _ := lintIn(t, dir); !strings.Contains(out, "m.go:11:2: error: retries") {
		t.Errorf("got\n%s\nwant the finding at its place", out)
	}
}

// TestTags: build tags come from the flag, or else from GOFLAGS.
func TestTags(t *testing.T) {
	dir := module(t, map[string]string{"m.go": clean, "slow.go": "//go:build slow\n\n" + fixedRetry})
	if code, out, errs := lintIn(t, dir, "--tags", "slow,other", "--no-cache", "-p", "1"); code != ExitFindings {
		t.Errorf("the flag: got %d\n%s%s", code, out, errs)
	}
	t.Setenv("GOFLAGS", "-trimpath -tags=slow")
	var out, errs bytes.Buffer
	if code := Main(t.Context(), nil, []string{"-C", dir, "-q"}, &out, &errs); code != ExitFindings {
		t.Errorf("GOFLAGS: got %d\n%s%s", code, &out, &errs)
	}
}
