package check

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// These hold fifty retries, and once passed: check took them for something else,
// or did not know them.
func TestWhatWasNotJudgedDoesNotPass(t *testing.T) {
	const policy = "service: a\ndependencies:\n  b: {owner: a, max_retries: 50, budget: none"
	const virtual = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: b}\nspec:\n  http: [{retries: {attempts: 50}, route: [{destination: {host: b}}]}]\n"
	indent := func(s string) string { return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n" }
	for _, tt := range []struct {
		name, file, text string
		code             int
		want             string
	}{
		{"a value that speaks of nginx", "p.yaml", policy + ", other_layers: \"nginx: proxy_pass http://b;\"}\n", 1, "max_retries 50 is outside 1-5"},
		{"a value that speaks of gRPC", "p.yaml", policy + ", other_layers: methodConfig}\n", 1, "max_retries 50 is outside 1-5"},
		{"a comment that speaks of Envoy", "p.yaml", "# static_resources: none\n" + policy + "}\n", 1, "max_retries 50 is outside 1-5"},
		{"a comment that speaks of Istio", "p.yaml", "# networking.istio.io/ is gone\n" + policy + "}\n", 1, "max_retries 50 is outside 1-5"},
		{"a policy called a .conf", "p.conf", policy + "}\n", 1, "max_retries 50 is outside 1-5"},
		{"an unknown key beside it", "p.yaml", policy + "}\nunknown: 1\n", 2, "max_retries 50 is outside 1-5"},
		{"a list of Kubernetes", "l.yaml", "apiVersion: v1\nkind: List\nitems:\n- x: 1\n  y:\n" + indent(virtual), 1, "50 retries are outside 1-5"},
		{"a ConfigMap", "c.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  haproxy.cfg: |\n" + indent("defaults\n  retries 50\nbackend b\n  server b b:80"), 1, "50 retries are outside 1-5"},
		{"values of a chart", "values.yaml", "grpc:\n  config: |\n" + indent(`{"methodConfig": [{"name": [{"service": "b"}], "retryPolicy": {"maxAttempts": 50, "initialBackoff": "1s", "maxBackoff": "10s", "backoffMultiplier": 2, "retryableStatusCodes": ["NOT_FOUND"]}}]}`), 1, "NOT_FOUND"},
		{"a merge key", "m.yaml", "x: &x {attempts: 50}\n---\n" + virtual, 1, "50 retries are outside 1-5"},
		{"a document behind another", "m.yaml", "kind: Service\n---\n" + virtual, 1, "50 retries are outside 1-5"},
		{"retries set twice", "v.yaml", strings.Replace(virtual, "attempts: 50", "attempts: 1, attempts: 50", 1), 2, "a key appears twice here"},
		{"JSON with comments", "g.json", "{\n  // c\n  \"methodConfig\": [{\"retryPolicy\": {\"maxAttempts\": 50}}]}", 2, "g.json:2:3"},
		{"a template", "t.yaml", "spec: {{ .Values.spec }}\nretries: 50\n", 2, "a template: render it"},
		{"a broken file", "b.yaml", "spec: [\nretries: 50\n", 2, "not YAML"},
		{"a count that a template fills in", "v.yaml", strings.Replace(virtual, "50", "$RETRIES", 1), 1, `"$RETRIES" is not a number`},
		{"a secret", "s.yaml", "kind: Secret\ndata: {vs.yaml: " + base64.StdEncoding.EncodeToString([]byte(virtual)) + "}\n", 1, "50 retries are outside 1-5"},
		{"settings in Python", "celery.py", "task_annotations = {'a': {'max_retries': 50}}\n", 2, "celery.py:1:1: not read: Celery: forbear does not read this format"},
		{"nothing that is known", "x.yaml", "client: {retries: 50}\n", 2, "a retry setting that check does not read: retries"},
		{"an empty file", "e.yaml", "", 2, "not recognized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clitest.Run(t, Command(), "", clitest.File(t, tt.file, tt.text))
			if r.Code != tt.code || !strings.Contains(r.Out+r.Errors, tt.want) {
				t.Errorf("exit code %d, want %d with %q: %s%s", r.Code, tt.code, tt.want, r.Out, r.Errors)
			}
			if !strings.Contains(r.Out, "\njudged ") {
				t.Errorf("it does not say what was judged: %s", r.Out)
			}
		})
	}
}

// folder writes files below a folder of the test's own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolders(t *testing.T) {
	files := map[string]string{
		"a/policy.yaml":       passing,
		"b/nginx.conf":        "server { location / { proxy_pass http://b; } }\n",
		"old/policy.yaml":     failing,
		"old/keep/p.yaml":     passing,
		"README.md":           "retries: 50\n",
		"compose.yaml":        "services: {a: {deploy: {restart_policy: {max_attempts: 3}}, healthcheck: {retries: 3}}}\n",
		"settings.json":       "{ // editor\n \"tab\": 4 }\n",
		"node_modules/p.yaml": failing,
		".forbearignore":      "# gone soon\nold/*\n!old/keep\n",
	}
	for _, tt := range []struct {
		name   string
		change map[string]string
		args   []string
		code   int
		want   string
	}{
		{"as it is", nil, nil, 0, "judged 3 units in 3 files; 2 files not recognized; 1 file ignored; 1 vendored folder left out\n"},
		{"without the ignore file", map[string]string{".forbearignore": ""}, nil, 1, "judged 4 units in 4 files; 2 files not recognized; 1 vendored folder left out\n"},
		{"packages that pip installed", map[string]string{"fn/a-1.0.dist-info/RECORD": "a/__init__.py,sha256=x,1\na-1.0.dist-info/RECORD,,\n", "fn/a/policy.yaml": failing, "fn/policy.yaml": passing, "fn/own/policy.yaml": passing}, nil, 0, "judged 5 units in 5 files; 2 files not recognized; 1 file ignored; 3 vendored folders left out\n"},
		{"strict", nil, []string{"--strict"}, 2, "compose.yaml:1:42: "},
		{"a broken file", map[string]string{"b/x.yaml": "a: [\nretries: 3\n"}, nil, 2, "1 file not read, or only in part"},
		{"a broken file of something else", map[string]string{"b/x.yaml": "a: [\n"}, nil, 0, "3 files not recognized"},
		{"broken YAML in a ConfigMap", map[string]string{"b/c.yaml": "kind: ConfigMap\ndata:\n  envoy.yaml: |\n    a: [\n    retries: 50\n"}, nil, 2, "c.yaml:"},
		{"another program's notation", map[string]string{"pg/postgresql.conf": "wal_retry = 5s # e.g. '<%u%%%d> '\nb: [\n"}, nil, 0, "pg/postgresql.conf:1:1: not recognized"},
		{"another program's notation, strictly", map[string]string{"pg/postgresql.conf": "wal_retry = 5s # e.g. '<%u%%%d> '\nb: [\n"}, []string{"--strict"}, 2, "pg/postgresql.conf:1:1: not recognized"},
		{"a broken file of nginx", map[string]string{"b/site.conf": "server { location / { proxy_pass http://b; proxy_next_upstream error non_idempotent; }\n"}, nil, 2, "a block has no end"},
		{"a template of nginx", map[string]string{"nginx/site.conf.j2": "{% for s in sites %}\nproxy_next_upstream {{ s.words }}; }\n"}, nil, 2, "a template: render it"},
		{"a template of YAML", map[string]string{"b/vs.yaml.j2": "{% for s in sites %}\nretries: {{ s.n }}\n"}, nil, 2, "a template: render it"},
		{"a script", map[string]string{"init.d/nginx": "#!/bin/sh\nfor retry in 1 2 3; do echo \"[ $retry: {{\"; done\n"}, nil, 0, "3 files not recognized"},
		{"a binary", map[string]string{"sbin/nginx": "\x7fELF\x00\x00 proxy_next_upstream {{ retry: ["}, nil, 0, "3 files not recognized"},
		{"a service that is no policy's", map[string]string{"charts/values.yaml": "service:\n  type: ClusterIP\n"}, nil, 0, "3 files not recognized"},
		{"settings", map[string]string{"s/.forbear-check.yaml": "severity: {FC501: off}\n", "b/q.yaml": "service: a\ndependencies: {b: {strict: true, methods: [GET]}}\n"}, []string{"--config", "s/.forbear-check.yaml"}, 0, "; 1 file ignored; 1 vendored folder left out; 1 finding turned off by the settings\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, files)
			for name, text := range tt.change {
				path := filepath.Join(dir, name)
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			r := clitest.Run(t, Command(), "", append(tt.args, ".")...)
			if r.Code != tt.code || !strings.Contains(r.Out+r.Errors, tt.want) {
				t.Errorf("exit code %d, want %d with %q: %s%s", r.Code, tt.code, tt.want, r.Out, r.Errors)
			}
		})
	}
}

// Of a folder that holds nothing for check it is one line, and not one a file.
func TestNothingInAFolder(t *testing.T) {
	t.Chdir(folder(t, map[string]string{"a/x.yaml": "x: 1\n", "a/y.yaml": "y: 1\n"}))
	r := clitest.Run(t, Command(), "", "a")
	if want := "not recognized: nothing to judge in 2 files: no policy file, and no settings that check reads (see --from)\n"; r.Code != cli.ExitUsage || !strings.HasPrefix(r.Out, want) || strings.Contains(r.Out, "x.yaml") {
		t.Errorf("exit code %d, want 2 with %q: %s", r.Code, want, r.Out)
	}
}

func TestOperands(t *testing.T) {
	dir := folder(t, map[string]string{"a/p.yaml": failing, "b/c/p.yaml": passing})
	t.Chdir(dir)
	for _, tt := range []struct {
		args  string
		stdin string
		code  int
		want  string
	}{
		{"-", failing, cli.ExitFound, "stdin:3:"},
		{"-", "", cli.ExitUsage, "not recognized"},
		{"**/p.yaml", "", cli.ExitFound, "judged 2 units in 2 files"},
		{"b/**/p.yaml", "", cli.ExitOK, "judged 1 unit in 1 file;"},
		{"c*.yaml", "", cli.ExitUsage, "no file matches"},
		{"b a/p.yaml a", "", cli.ExitFound, "judged 2 units in 2 files"},
	} {
		r := clitest.Run(t, Command(), tt.stdin, strings.Fields(tt.args)...)
		if r.Code != tt.code || !strings.Contains(r.Out+r.Errors, tt.want) {
			t.Errorf("%s: exit code %d, want %d with %q: %s%s", tt.args, r.Code, tt.code, tt.want, r.Out, r.Errors)
		}
	}
}

// Of two reports in one file, the first would be lost.
func TestOneFileForTwoReports(t *testing.T) {
	t.Chdir(folder(t, map[string]string{"p.yaml": passing}))
	r := clitest.Run(t, Command(), "", "-o", "sarif:a.out", "-o", "json:a.out", "p.yaml")
	if r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "two outputs go to a.out") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}
