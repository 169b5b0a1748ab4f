package driver

import (
	"strings"
	"testing"
)

const suppressible = `package m

import (
	"net/http"
	"time"
)

func Fetch(url string) (err error) {
	%s
	for attempt := 0; attempt < 3; attempt++ {
		var resp *http.Response
		if resp, err = http.Get(url); err == nil {
			return resp.Body.Close()
		}
		if attempt < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}
`

func TestSuppression(t *testing.T) {
	tests := []struct {
		name, directive string
		code            int
		want, not       string
	}{
		{"none", "", ExitFindings, "FB1001", "FB000"},
		{"with a reason", "//forbear:ignore FB1001 the vendor asks for 1 s", ExitPass, "no findings", "FB1001"},
		{"nolint with a reason", "//nolint:forbear // the vendor asks for 1 s", ExitPass, "no findings", "FB1001"},
		{"without a reason", "//forbear:ignore FB1001", ExitFindings, "FB0001", "FB0003"},
		{"nolint without a reason", "//nolint:forbear", ExitFindings, "FB0001", "FB0003"},
		{"unknown rule", "//forbear:ignore FB9999 because", ExitFindings, "FB0002", "FB0003"},
		{"another rule", "//forbear:ignore FB1002 because", ExitFindings, "FB0003", "FB0001"},
		{"two rules", "//forbear:ignore FB1001,FB1012 because", ExitPass, "no findings", "FB1001"},
		{"nolint of another linter", "//nolint:errcheck // because", ExitFindings, "FB1001", "FB000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := strings.Replace(suppressible, "%s", tt.directive, 1)
			code, out, errs := lintIn(t, module(t, map[string]string{"m.go": src}))
			if code != tt.code || !strings.Contains(out, tt.want) || strings.Contains(out, tt.not) {
				t.Errorf("got %d\n%s%s\nwant %d with %q and without %q", code, out, errs, tt.code, tt.want, tt.not)
			}
		})
	}
}

// TestSuppressionShown: suppressed findings can be shown, with their reasons.
func TestSuppressionShown(t *testing.T) {
	src := strings.Replace(suppressible, "%s", "//forbear:ignore FB1001 the vendor asks for 1 s", 1)
	code, out, _ := lintIn(t, module(t, map[string]string{"m.go": src}), "--show-suppressed")
	if code != ExitPass || !strings.Contains(out, "(suppressed: the vendor asks for 1 s)") {
		t.Errorf("got %d and %q", code, out)
	}
}

// TestWholeFunction: a directive on a function suppresses advice, but none of
// the rules that block a merge.
func TestWholeFunction(t *testing.T) {
	src := strings.Replace(suppressible, "\t%s\n", "", 1)
	blocked := strings.Replace(src, "func Fetch", "// Fetch fetches.\n//\n//forbear:ignore FB1001 the vendor asks for 1 s\nfunc Fetch", 1)
	if code, out, _ := lintIn(t, module(t, map[string]string{"m.go": blocked})); code != ExitFindings {
		t.Errorf("merge-blocking: got %d, want %d\n%s", code, ExitFindings, out)
	}
	advised := strings.Replace(src, "func Fetch", "// Fetch fetches.\n//\n//forbear:ignore FB1012 bounded by the client\nfunc Fetch", 1)
	if _, out, _ := lintIn(t, module(t, map[string]string{"m.go": advised}), "--all"); strings.Contains(out, "FB1012") || strings.Contains(out, "FB0003") {
		t.Errorf("advice: got %s, want no FB1012", out)
	}
}

// TestConfiguration: a user's own library is judged by the user's table, and
// bad tables are refused.
func TestConfiguration(t *testing.T) {
	files := map[string]string{
		"m.go":               "package m\n\nimport \"example.com/m/again\"\n\nvar Schedule = again.Every(5)\n",
		"again/again.go":     "package again\n\nfunc Every(s int) int { return s }\n",
		".forbear-lint.yaml": "libraries:\n- {package: [example.com/m/again], call: Every, verdict: fixed, message: again.Every waits the same time}\n",
	}
	dir := module(t, files)
	if code, out, errs := lintIn(t, dir); code != ExitFindings || !strings.Contains(out, "again.Every waits the same time") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	for _, bad := range []string{"libraries:\n- {package: [x], verdict: fixed}\n", "librarys: []\n", "libraries:\n- {package: [x], call: a, verdict: odd}\n"} {
		write(t, dir, ".forbear-lint.yaml", bad)
		if code, _, errs := lintIn(t, dir); code != ExitUnjudged || !strings.Contains(errs, ".forbear-lint.yaml:") {
			t.Errorf("%q: got %d, %q; want %d", bad, code, errs, ExitUnjudged)
		}
	}
}
