package driver

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %v: %v\n%s", args, err, out)
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
			if !strings.Contains(got, "time.Sleep(rand.N(2") {
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
		t.Setenv("GOFLAGS", "-trimpath")
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
	if !strings.Contains(out, "m.go:10:2: error: retries POST") || !strings.Contains(out, "3 findings, 3 of them fail; --fix can fix 1\n") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	code, out, errs = lintIn(t, dir, "--fail-on", "medium", "--fix")
	if code != ExitFindings || !strings.Contains(out, "m.go:11:2: error: retries POST") || !strings.Contains(errs, "1 fix applied\n") {
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
