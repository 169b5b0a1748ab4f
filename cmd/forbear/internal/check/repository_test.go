package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// A repository with templates, broken files and faults adopts the gate with one command.
// What is new from then on fails.
func TestAdoptsARepository(t *testing.T) {
	files := map[string]string{
		"a/policy.yaml": failing,
		"b/policy.yaml": broken,
		"c/x.yaml":      "a: [\nretries: 3\n",
	}
	for i := range 9 {
		files[fmt.Sprintf("charts/%d.yaml", i)] = "retries: {{ .Values.retries }}\n"
	}
	dir := folder(t, files)
	t.Chdir(dir)
	if r := clitest.Run(t, Command(), "", "."); r.Code != cli.ExitUsage || !strings.Contains(r.Out, "\n12 errors, 0 warnings, 0 notes\n") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	const said = "check: wrote known.json (1 finding, 11 places that cannot be judged). Review it, commit it"
	if r := clitest.Run(t, Command(), "", "--write-baseline", "known.json", "."); r.Code != cli.ExitOK || !strings.Contains(r.Errors, said) {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	check := func(want string, code int) {
		t.Helper()
		if r := clitest.Run(t, Command(), "", "--baseline", "known.json", "."); r.Code != code || !strings.Contains(r.Out, want) {
			t.Errorf("exit code %d, want %d with %q: %s%s", r.Code, code, want, r.Out, r.Errors)
		}
	}
	check("0 errors, 0 warnings, 0 notes; 12 in the baseline\n", cli.ExitOK)
	// What was judged then, and is not any longer, is no less than new.
	for name, text := range map[string]string{"a/policy.yaml": broken, "new/policy.yaml": broken, "c/x.yml": files["c/x.yaml"]} {
		change(t, dir, name, text)
		check("1 error, 0 warnings, 0 notes; ", cli.ExitUsage)
		if change(t, dir, name, files[name]); files[name] == "" {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	// Nor is another fault of a file that had one.
	change(t, dir, "b/policy.yaml", "service: a\ndependencies: {b: {owner: a, max_retrie: 99}}\n")
	check("1 error, 0 warnings, 0 notes; ", cli.ExitUsage)
	// What can be judged again is judged.
	change(t, dir, "b/policy.yaml", failing)
	check("1 error, 0 warnings, 0 notes; 11 in", cli.ExitFound)
}

func change(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Nothing is taken as given where nothing was judged, or where an operand is not there.
func TestNoBaselineOfNothing(t *testing.T) {
	t.Chdir(folder(t, map[string]string{"x.yaml": "a: [\nretries: 3\n", "p/policy.yaml": failing}))
	if r := clitest.Run(t, Command(), "", "--write-baseline", "known.json", "x.yaml"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "known.json was not written: nothing was judged") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	if r := clitest.Run(t, Command(), "", "--write-baseline", "known.json", "p", "none.yaml"); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	if r := clitest.Run(t, Command(), "", "--baseline", "known.json", "p", "none.yaml"); r.Code != cli.ExitUsage || !strings.Contains(r.Out, "none.yaml: not read: no such file") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}

// What a product cannot hold is known for the files that it was known for.
func TestBaselineOfLimits(t *testing.T) {
	const upstream = "upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; }\nserver { proxy_next_upstream_timeout 10s; proxy_read_timeout 1s; location / { proxy_pass http://a; } }\n"
	dir := folder(t, map[string]string{"a/nginx.conf": upstream})
	t.Chdir(dir)
	run := func(args ...string) clitest.Result { return clitest.Run(t, Command(), "", append(args, "a", "b")...) }
	change(t, dir, "b/policy.yaml", passing)
	if r := run("--fail-on", "note", "--write-baseline", "known.json"); r.Code != cli.ExitOK {
		t.Fatalf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	if r := run("--fail-on", "note", "--baseline", "known.json"); r.Code != cli.ExitOK {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	change(t, dir, "b/nginx.conf", upstream)
	if r := run("--fail-on", "note", "--baseline", "known.json"); r.Code != cli.ExitFound || !strings.Contains(r.Out, "nginx cannot keep R-1 (full jitter) and R-7") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	// Standard input is another file each time.
	clitest.Run(t, Command(), "service: a\ndependencies: {b: {max_retrie: 1}}\n", "--write-baseline", "stdin.json", "-")
	if r := clitest.Run(t, Command(), "service: a\ndependencies: {b: {max_retrie: 1}}\n", "--baseline", "stdin.json", "-"); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}

// Errors come first, in each format; what many files have in common is said once.
func TestNoise(t *testing.T) {
	const upstream = "upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; }\nserver { proxy_next_upstream error http_500 non_idempotent; proxy_next_upstream_timeout 10s; proxy_read_timeout 1s; location / { proxy_pass http://a; } }\n"
	files := map[string]string{
		"z/policy.yaml": failing, "y/policy.yaml": warned, "x/policy.yaml": strings.ReplaceAll(warned, "b: ", "c: "),
		"a/nginx.conf": "server { location / { proxy_pass http://named; } }\n",
	}
	for i := range 30 {
		files[fmt.Sprintf("n%d/nginx.conf", i)] = upstream
	}
	t.Chdir(folder(t, files))
	for _, format := range []string{"text", "github", "json", "markdown", "sarif"} {
		r := clitest.Run(t, Command(), "", "-o", format, ".")
		last, first := strings.LastIndex(r.Out, "FC101"), strings.Index(r.Out, "nginx cannot keep R-1 (full jitter)")
		if format == "sarif" { // its rules stand behind the results, or before them
			r.Out = r.Out[strings.Index(r.Out, `"results"`):]
			last, first = strings.Index(r.Out, "FC101"), strings.Index(r.Out, "nginx cannot keep R-1 (full jitter)")
		}
		if last < 0 || first < last || strings.Count(r.Out, "nginx cannot keep") != 1 || !strings.Contains(r.Out, "(in 30 files)") {
			t.Errorf("%s: %s%s", format, r.Out, r.Errors)
		}
	}
	r := clitest.Run(t, Command(), "", ".")
	if strings.Count(r.Out, "[FC210") != 3 || !strings.Contains(r.Out, "(and 27 more places: see -o json) [FC210") || strings.Count(r.Out, "[FC301 R-6]") != 30 {
		t.Errorf("got %s", r.Out)
	}
	if floors := strings.Index(r.Out, "quiet clients may retry c and b beyond"); floors < 0 || floors > strings.Index(r.Out, "[FC001]") {
		t.Errorf("the floors do not stand among the warnings: %s", r.Out)
	}
	for line := range strings.Lines(r.Out) {
		if strings.Contains(line, " -> ") && !strings.HasPrefix(line, "whole graph") && len([]rune(line)) > 81 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	if !strings.Contains(r.Out, "and 14 calls with no greater load") {
		t.Errorf("got %s", r.Out)
	}
	r = clitest.Run(t, Command(), "", "--errors-only", ".")
	if strings.Contains(r.Out, ": warning: ") || strings.Contains(r.Out, ": note: ") || strings.Contains(r.Out, "attempts ") || !strings.Contains(r.Out, "31 errors, 31 warnings, 2 notes\n") || r.Code != cli.ExitFound {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}

// A file of the same name in another folder is another file.
func TestBaselineOfAnotherFile(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"policy.yaml", "svc/policy.yaml"} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("service: a\ndependencies:\n  b: {methods: [POST]}\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	if r := clitest.Run(t, Command(), "", "--write-baseline", "base.json", "policy.yaml"); r.Code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	t.Chdir(filepath.Join(root, "svc"))
	if r := clitest.Run(t, Command(), "", "--baseline", "../base.json", "policy.yaml"); r.Code != cli.ExitFound {
		t.Errorf("another file passes: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "--baseline", "../base.json", "../policy.yaml"); r.Code != cli.ExitOK {
		t.Errorf("the file itself: %+v", r)
	}
	if r := clitest.Run(t, Command(), "", "--baseline", "../base.json", "--write-baseline", "x.json", "policy.yaml"); r.Code != cli.ExitUsage {
		t.Errorf("both flags: %+v", r)
	}
}

// A baseline means the same from wherever check is run, and however the files are named.
func TestBaselineFromElsewhere(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"sv/nginx.conf":  "events {}\nhttp {\n  upstream payments { server 10.0.0.1; server 10.0.0.2; }\n  server { location / { proxy_pass http://payments; proxy_next_upstream error timeout http_500 non_idempotent; } }\n}\n",
		"sv/broken.yaml": "retry: {{ .Values.retry }}\n",
		"other/x":        "",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sv := filepath.Join(root, "sv")
	for _, written := range [][3]string{{"other", "../sv/known.json", "../sv"}, {".", "sv/known.json", "sv"}, {"sv", "known.json", "."}, {"other", sv + "/known.json", sv}} {
		t.Chdir(filepath.Join(root, written[0]))
		if r := clitest.Run(t, Command(), "", "--write-baseline", written[1], written[2]); r.Code != cli.ExitOK {
			t.Fatalf("%v: %d %s%s", written, r.Code, r.Out, r.Errors)
		}
		for _, read := range [][3]string{{"other", "../sv/known.json", "../sv"}, {".", "sv/known.json", "sv"}, {"sv", "known.json", "."}, {"sv", "known.json", sv}, {"sv", sv + "/known.json", "nginx.conf"}} {
			t.Chdir(filepath.Join(root, read[0]))
			if r := clitest.Run(t, Command(), "", "--baseline", read[1], read[2]); r.Code != cli.ExitOK || !strings.Contains(r.Out, "in the baseline") {
				t.Errorf("written %v, read %v: %d %s%s", written, read, r.Code, r.Out, r.Errors)
			}
		}
	}
}
