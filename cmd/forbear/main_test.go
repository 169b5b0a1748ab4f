//forbear:plain it drives processes, which share nothing with the test

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
)

// invoke runs the program in this process.
func invoke(t *testing.T, stdin string, args ...string) clitest.Result {
	t.Helper()
	whole := &cli.Command{Run: commands.Program().Run}
	return clitest.Run(t, whole, stdin, args...)
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
		{"unknown flag", []string{"explain", "--nope"}, 2, "", "explain: unknown flag --nope"},
		{"flag slip", []string{"check", "--max-amplifcation", "4", "x"}, 2, "", "did you mean --max-amplification? (see forbear check --help)"},
		{"flag slip with one dash", []string{"check", "x", "-max-amplifcation=4"}, 2, "", "did you mean --max-amplification?"},
		{"flag slip of lint", []string{"lint", "--fial-on", "low"}, 2, "", "did you mean --fail-on? (see forbear lint --help)"},
		{"verb slip of dlq", []string{"dlq", "lsit"}, 2, "", `unknown verb "lsit": did you mean list?`},
		{"verb slip of dlq behind flags", []string{"dlq", "-o", "json", "lsit"}, 2, "", `unknown verb "lsit": did you mean list?`},
		{"verb slip of keys", []string{"keys", "setle"}, 2, "", `unknown verb "setle": did you mean settle?`},
		{"verb slip of policy", []string{"policy", "formt", "x"}, 2, "", `unknown verb "formt": did you mean format?`},
		{"verb slip of rules", []string{"rules", "explian", "FC105"}, 2, "", `unknown verb "explian": did you mean explain?`},
		{"verb slip of sim", []string{"sim", "rnu", "x"}, 2, "", `unknown verb "rnu": did you mean run?`},
		{"verb far from all", []string{"rules", "xyzzy"}, 2, "", `unknown verb "xyzzy": want list or explain (see forbear rules --help)`},
		{"completion", []string{"completion", "powershell"}, 0, "Register-ArgumentCompleter", ""},
		{"completion of no shell", []string{"completion"}, 2, "", "want one shell: bash, zsh, fish, powershell"},
		{"slip of a shell", []string{"completion", "fihs"}, 2, "", "did you mean fish?"},
		{"flag of the program", []string{"--nope"}, 2, "", "unknown flag: --nope (see forbear help)"},
		{"operand", []string{"explain", "503"}, 2, "", `explain: unexpected argument "503"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := invoke(t, "", tt.args...)
			if got.Code != tt.code || !strings.Contains(got.Out, tt.out) || !strings.Contains(got.Errors, tt.errors) {
				t.Errorf("got %+v", got)
			}
			if tt.out == "" && got.Out != "" || tt.errors == "" && got.Errors != "" {
				t.Errorf("wrote to the wrong stream: %+v", got)
			}
		})
	}
}

// Every command tells about itself, with examples that name it.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands.Program() {
		got := invoke(t, "", c.Name, "--help")
		for _, want := range []string{"forbear " + c.Name + ": ", "Usage: forbear " + c.Name, "Examples:\n  forbear " + c.Name} {
			if got.Code != 0 || !strings.Contains(got.Out, want) {
				t.Errorf("%s --help lacks %q:\n%s", c.Name, want, got.Out)
			}
		}
	}
}

// Each verb that a usage names is one of the command's, which refuses too many operands
// before it opens anything.
func TestEveryVerbIsKnown(t *testing.T) {
	for _, name := range []string{"messages", "endpoints", "applications", "dlq", "keys", "token", "database"} {
		c, _ := commands.Program().Find(name)
		for _, v := range c.Verbs() {
			if got := invoke(t, "", name, v, "a", "b", "c"); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, v+": unexpected argument") {
				t.Errorf("%s %s: got %+v", name, v, got)
			}
		}
	}
}

func TestCanceledContextEndsServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := commands.Program().Run(ctx, &cli.Streams{Out: &out, Err: &errs}, []string{"serve", "--listen", "127.0.0.1:0"})
	if code != 0 {
		t.Errorf("code %d: %s", code, errs.String())
	}
}
