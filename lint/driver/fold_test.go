package driver

import (
	"path/filepath"
	"strings"
	"testing"
)

// guarded has a wait that is fixed, and none after the last attempt; unguarded has
// one there too, which is found at the same place.
var (
	guarded   = strings.Replace(suppressible, "%s", "", 1)
	unguarded = strings.Replace(strings.Replace(guarded, "\t\tif attempt < 2 {\n", "", 1), "Second)\n\t\t}\n", "Second)\n", 1)
)

// TestOneCause: two findings of one wait are one.
func TestOneCause(t *testing.T) {
	code, out, errs := lintIn(t, module(t, map[string]string{"m.go": unguarded}))
	if code != ExitFindings || !strings.Contains(out, "FB1054 too: ") || strings.Contains(out, "[FB1054") {
		t.Errorf("got %d\n%s%s\nwant FB1054 below FB1001", code, out, errs)
	}
}

// TestNewBesideKnown: what is new does not go under in what the baseline knows,
// and a baseline knows both of one cause, be it one of ours or a SARIF report.
func TestNewBesideKnown(t *testing.T) {
	dir := module(t, map[string]string{"m.go": guarded})
	known := func(args ...string) (code int, out string) {
		code, out, _ = lintIn(t, dir, append([]string{"--fail-on", "medium", "--baseline", filepath.Join(dir, "known")}, args...)...)
		return code, out
	}
	for _, args := range [][]string{{"--write-baseline"}, {"-o"}} {
		write(t, dir, "m.go", guarded)
		accept := func() {
			name := filepath.Join(dir, "known")
			if args[0] == "-o" {
				name = "sarif:" + name
			}
			lintIn(t, dir, "--fail-on", "medium", args[0], name)
		}
		accept()
		write(t, dir, "m.go", unguarded)
		if code, out := known(); code != ExitFindings || !strings.Contains(out, "[FB1054") || strings.Contains(out, "[FB1001") {
			t.Errorf("%v: got %d\n%s\nwant FB1054, which is new", args, code, out)
		}
		accept()
		if code, out := known(); code != ExitPass || out != "no findings in 1 package; 2 in the baseline\n" {
			t.Errorf("%v: got %d\n%s\nwant that both are known", args, code, out)
		}
	}
}

// TestBaselineOfAll: a baseline of changed files would lack the others.
func TestBaselineOfAll(t *testing.T) {
	if code, _, errs := lintIn(t, t.TempDir(), "--write-baseline", "x.json", "--since", "HEAD"); code != ExitUnjudged || !strings.Contains(errs, "--since") {
		t.Errorf("got %d, %q; want a refusal", code, errs)
	}
}
