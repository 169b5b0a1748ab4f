package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// result is what a run of the program came to.
type result struct {
	code        int
	out, errors string
}

// invoke runs the program in this process.
func invoke(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, got:\n%s", name, got)
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		out    string // what standard output contains
		errors string // what standard error contains
	}{
		{"nothing", nil, 2, "", "Usage: forbear COMMAND"},
		{"help", []string{"help"}, 0, "Commands:", ""},
		{"--help", []string{"--help"}, 0, "Commands:", ""},
		{"help of one", []string{"help", "explain"}, 0, "forbear explain --status 503", ""},
		{"--help of one", []string{"serve", "--help"}, 0, "forbear serve --config policy.yaml", ""},
		{"help of none", []string{"help", "explian"}, 2, "", `unknown command "explian": did you mean explain?`},
		{"slip", []string{"sevre"}, 2, "", `unknown command "sevre": did you mean serve?`},
		{"nonsense", []string{"xyzzy"}, 2, "", `unknown command "xyzzy": see forbear help`},
		{"version", []string{"version"}, 0, "forbear ", ""},
		{"version json", []string{"--version", "-o", "json"}, 0, `"version":`, ""},
		{"version yaml", []string{"version", "-o", "yaml"}, 2, "", `unknown format "yaml"`},
		{"unknown flag", []string{"explain", "--nope"}, 2, "", "explain: flag provided but not defined: -nope"},
		{"operand", []string{"explain", "503"}, 2, "", `explain: unexpected argument "503"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := invoke(t, "", tt.args...)
			if got.code != tt.code || !strings.Contains(got.out, tt.out) || !strings.Contains(got.errors, tt.errors) {
				t.Errorf("got %+v", got)
			}
			if tt.out == "" && got.out != "" || tt.errors == "" && got.errors != "" {
				t.Errorf("wrote to the wrong stream: %+v", got)
			}
		})
	}
}

// Every command tells about itself, with examples that name it.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		got := invoke(t, "", c.name, "--help")
		for _, want := range []string{"forbear " + c.name + ": ", "Usage: forbear " + c.name, "Examples:\n  forbear " + c.name} {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s --help lacks %q:\n%s", c.name, want, got.out)
			}
		}
	}
}

// The examples of explain's manual do what they show.
func TestExplainExamplesRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("dependencies: {payments: {max_retries: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const answer = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","result":null,"errors":[{"code":"RATE_LIMITED","message":""}]}`
	if err := os.WriteFile(filepath.Join(dir, "answer.json"), []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for line := range strings.Lines(strings.TrimSpace(explainCommand().examples)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "forbear ")
		if !ok {
			continue // a pipe of the shell
		}
		if got := invoke(t, "", words(command)...); got.code == exitUsage {
			t.Errorf("%s: %s", command, got.errors)
		}
	}
}

// words splits a command line as a shell does, as far as quotes go.
func words(line string) (args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

func TestCanceledContextEndsServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs)
	if code != 0 {
		t.Errorf("code %d: %s", code, errs.String())
	}
}
