package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The policy files that the action judges: one passes the gate, one has a finding, and
// one cannot be read.
const (
	passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"
	failing = "service: a\ndependencies:\n  b: {owner: a, strict: true, budget: none}\n"
	broken  = "service: a\ndependences: {}\n"
)

// action is what action.yml may hold, as far as this one does.
type action struct {
	Name, Description, Author string
	Inputs                    map[string]struct{ Description, Default string }
	Outputs                   map[string]struct{ Description, Value string }
	Runs                      struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	ID, Name, If, Uses, Shell, Run string
	Dir                            string `yaml:"working-directory"`
	Env, With                      map[string]string
}

func readAction(t *testing.T) action {
	t.Helper()
	loader, err := yaml.NewLoader(strings.NewReader(slurp(t, "../../action.yml")), yaml.WithKnownFields())
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := loader.Load(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

var inExpression = regexp.MustCompile(`(inputs|steps|github)\.([a-z0-9_-]+)`)

// Each step has what the form demands, and names what there is. No script holds an
// expression: what a caller passes would be part of it.
func TestActionIsWellFormed(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || a.Name == "" || a.Description == "" || len(a.Runs.Steps) == 0 {
		t.Fatalf("got %+v", a)
	}
	ids := map[string]bool{}
	var texts []string
	for _, out := range a.Outputs {
		texts = append(texts, out.Value)
	}
	for _, s := range a.Runs.Steps {
		ids[s.ID] = true
		if (s.Run == "") == (s.Uses == "") || s.Run != "" && s.Shell != "bash" || s.Uses != "" && !strings.Contains(s.Uses, "@") {
			t.Errorf("step %+v", s)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("the script of %q holds an expression", s.Name)
		}
		texts = append(texts, s.If, s.Dir)
		for _, values := range []map[string]string{s.Env, s.With} {
			for v := range maps.Values(values) {
				texts = append(texts, v)
			}
		}
	}
	for _, text := range texts {
		for _, m := range inExpression.FindAllStringSubmatch(text, -1) {
			_, input := a.Inputs[m[2]]
			if m[1] == "inputs" && !input || m[1] == "steps" && !ids[m[2]] || m[1] == "github" && m[2] != "action_path" {
				t.Errorf("%q names %s, which is not there", text, m[0])
			}
		}
	}
}

// runAction runs the action's scripts one after the other, as a runner does with
// the inputs that are given. temp is the runner's folder, which keeps the binary from
// one run to the next. It returns the steps that failed and their outputs.
func runAction(t *testing.T, temp, dir string, given map[string]string) (failed []string, outputs map[string]string) {
	t.Helper()
	a := readAction(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("${{ github.action_path }}", root)
	input := func(name string) string {
		if v, ok := given[name]; ok {
			return v
		}
		return a.Inputs[name].Default
	}
	evaluate := func(s string) string {
		return inExpression.ReplaceAllStringFunc(values.Replace(s), func(m string) string { return input(strings.TrimPrefix(m, "inputs.")) })
	}
	for _, step := range []string{"check", "lint"} {
		_ = os.Remove(filepath.Join(temp, "forbear", step+".sarif"))
	}
	outputs = map[string]string{}
	path := os.Getenv("PATH")
	for _, s := range a.Runs.Steps {
		if m := regexp.MustCompile(`inputs\.([a-z-]+) != ''`).FindStringSubmatch(s.If); s.Run == "" || m != nil && input(m[1]) == "" {
			continue
		}
		paths, output := filepath.Join(t.TempDir(), "path"), filepath.Join(t.TempDir(), "output")
		c := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		c.Dir = filepath.Join(dir, strings.Trim(evaluate(s.Dir), "${} "))
		c.Env = append(os.Environ(), "PATH="+path, "RUNNER_TEMP="+temp, "GITHUB_PATH="+paths, "GITHUB_OUTPUT="+output)
		for name, v := range s.Env {
			c.Env = append(c.Env, name+"="+strings.TrimSuffix(strings.TrimPrefix(evaluate(v), "${{ "), " }}"))
		}
		if out, err := c.CombinedOutput(); err != nil {
			failed = append(failed, s.Name)
			t.Logf("%s: %v: %s", s.Name, err, out)
		}
		if b, err := os.ReadFile(paths); err == nil {
			path = strings.TrimSpace(string(b)) + ":" + path
		}
		if b, err := os.ReadFile(output); err == nil {
			_, file, _ := strings.Cut(strings.TrimSpace(string(b)), "=")
			outputs[s.ID] = file
		}
	}
	return failed, outputs
}

// The scripts of the action pass what is good, fail what is not, and leave SARIF
// behind in both cases. A failure of the one does not keep the other from running.
func TestAction(t *testing.T) {
	temp := t.TempDir()
	const pauses = `package p

import (
	"net/http"
	"time"
)

func Get(url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = http.Get(url); err == nil {
			return resp, nil
		}
		time.Sleep(time.Second)
	}
	return nil, err
}
`
	for _, tt := range []struct {
		name           string
		policy, source string
		inputs         map[string]string
		failed         string
		sarif          string // the steps that have one
	}{
		{"good", passing, "", nil, "", "check"},
		{"a finding", failing, "", nil, "forbear check", "check"},
		{"unreadable", broken, "", nil, "forbear check", "check"},
		{"more flags", passing, "", map[string]string{"check-flags": "--max-amplification 1.1"}, "forbear check", "check"},
		{"a glob", passing, "", map[string]string{"files": "**/*.yaml"}, "", "check"},
		{"nothing there", passing, "", map[string]string{"files": "none.yaml"}, "forbear check", "check"},
		{"no script", passing, "", map[string]string{"files": "$(touch made) forbear.yaml; touch made"}, "forbear check", "check"},
		{"clean code", passing, "package p\n", map[string]string{"lint": "./..."}, "", "check lint"},
		{"both bad", passing, pauses, map[string]string{"check-flags": "--max-amplification 1.1", "lint": "./..."}, "forbear check, forbear lint", "check lint"},
		{"lint alone", passing, pauses, map[string]string{"files": "", "lint": "./...", "lint-flags": "--fail-on high --all"}, "forbear lint", "lint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"forbear.yaml": tt.policy}
			if tt.source != "" {
				files["go.mod"], files["p.go"] = "module example.com/p\n\ngo 1.26\n", tt.source
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			failed, outputs := runAction(t, temp, dir, tt.inputs)
			if got := strings.Join(failed, ", "); got != tt.failed {
				t.Errorf("failed: %q, want %q", got, tt.failed)
			}
			for step := range strings.FieldsSeq(tt.sarif) {
				if data, err := os.ReadFile(outputs[step]); err != nil || !strings.Contains(string(data), `"version": "2.1.0"`) {
					t.Errorf("the SARIF of %s: %v: %.100s", step, err, data)
				}
			}
			if len(outputs) != len(strings.Fields(tt.sarif)) {
				t.Errorf("outputs: %v", outputs)
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
				t.Error("an input was run as a script")
			}
		})
	}
}

// What the guide shows of the action and the hooks is there.
func TestActionInTheGuide(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(slurp(t, "../../docs/guides/check-ci.md"), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d examples, want 2 at least", len(blocks))
	}
	var workflow struct{ Steps []actionStep }
	if err := yaml.Unmarshal([]byte(blocks[0][1]), &workflow); err != nil {
		t.Fatal(err)
	}
	inputs, named := readAction(t).Inputs, 0
	for _, s := range workflow.Steps {
		for name := range s.With {
			if _, ok := inputs[name]; !ok {
				t.Errorf("the guide gives the input %s, which the action does not take", name)
			}
			named++
		}
	}
	var config struct {
		Repos []struct {
			Hooks []struct{ ID string }
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[1][1]), &config); err != nil {
		t.Fatal(err)
	}
	hooks := slurp(t, "../../.pre-commit-hooks.yaml")
	for _, r := range config.Repos {
		for _, h := range r.Hooks {
			if !strings.Contains(hooks, "- id: "+h.ID+"\n") {
				t.Errorf("the guide names the hook %s, which is not there", h.ID)
			}
			named++
		}
	}
	if named != 5 {
		t.Errorf("the guide names %d inputs and hooks, want 5", named)
	}
}
