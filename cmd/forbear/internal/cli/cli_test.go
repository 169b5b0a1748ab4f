package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// Flags stand anywhere, and everything else is an operand.
func TestOperands(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		want       []string
		loud, done bool
	}{
		{"none", "", nil, false, false},
		{"before", "--loud a b", []string{"a", "b"}, true, false},
		{"between", "a --loud b", []string{"a", "b"}, true, false},
		{"behind", "a b --loud", []string{"a", "b"}, true, false},
		{"behind the end", "--loud a -- --loud -b", []string{"a", "--loud", "-b"}, true, false},
		{"all behind the end", "-- --loud", []string{"--loud"}, false, false},
		{"unknown", "a --quiet", nil, false, true},
		{"help", "a --help", nil, false, true},
	} {
		c := &cli.Command{Name: "say"}
		f := c.Flags()
		loud := f.Bool("loud", false, "say it loud")
		var b bytes.Buffer
		got, _, done := c.Operands(&cli.Streams{Out: &b, Err: &b}, f, strings.Fields(tt.args))
		if !slices.Equal(got, tt.want) || *loud != tt.loud || done != tt.done {
			t.Errorf("%s: got %v, loud %v, done %v, want %+v", tt.name, got, *loud, done, tt)
		}
	}
}

// The verbs of a command stand in its usage, and another is refused.
func TestVerbs(t *testing.T) {
	for usage, want := range map[string][]string{
		"list [-o text|json] | explain ID":      {"list", "explain"},
		"run|compare|sweep [FLAGS] [FILE]":      {"run", "compare", "sweep"},
		"migrate [--dry-run] FILE...":           {"migrate"},
		"[FLAGS] | --json < situations.jsonl":   nil,
		"[--config FILE] [--listen ADDRESS]...": nil,
		"FILE...":                               nil,
		"":                                      nil,
	} {
		c := &cli.Command{Name: "say", Usage: usage}
		if got := c.Verbs(); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", usage, got, want)
		}
		var b bytes.Buffer
		if code, ok := c.Knows(&cli.Streams{Err: &b}, "expain"); ok != (want == nil) || !ok && code != cli.ExitUsage {
			t.Errorf("%q: a verb that is not there: %d, %v", usage, code, ok)
		}
	}
}

// What a command registers is known without a run.
func TestRegistered(t *testing.T) {
	ran := false
	c := &cli.Command{Name: "say"}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		f.Bool("loud", false, "say it loud")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		ran = true
		return cli.ExitOK
	}
	if f := c.Registered(); f.Lookup("loud") == nil || ran {
		t.Errorf("got %v, ran %v", f.Lookup("loud"), ran)
	}
}

// A program lists its commands in their order, and help is one of them.
func TestProgram(t *testing.T) {
	ran := ""
	command := func(name string) *cli.Command {
		return &cli.Command{Name: name, Summary: name + " it", Run: func(context.Context, *cli.Streams, []string) int {
			ran = name
			return cli.ExitFound
		}}
	}
	p := cli.NewProgram(command("say"), command("version"))
	whole := &cli.Command{Run: p.Run}
	for args, want := range map[string]string{"say": "say", "-version": "version", "help say": "say"} {
		ran = ""
		if got := clitest.Run(t, whole, "", strings.Fields(args)...); got.Code != cli.ExitFound || ran != want {
			t.Errorf("%s: ran %q with %+v, want %q", args, ran, got, want)
		}
	}
	const list = "  say         say it\n  version     version it\n  completion  print a shell completion script\n  help        list the commands, or explain one\n"
	if got := clitest.Run(t, whole, "", "--help"); got.Code != cli.ExitOK || !strings.Contains(got.Out, list) {
		t.Errorf("--help: %+v", got)
	}
	if got := clitest.Run(t, whole, ""); got.Code != cli.ExitUsage || got.Out != "" || !strings.Contains(got.Errors, list) {
		t.Errorf("nothing: %+v", got)
	}
}

// A token that lets someone in is one that cannot be guessed, wherever it comes from. A
// file comes before the environment, and an empty one is a fault.
func TestTokensAreLong(t *testing.T) {
	const good = "sixteen-letters!"
	for variable, read := range map[string]func(string) (string, error){
		cli.EnvAPIToken: cli.APIToken, cli.EnvAdminToken: cli.AdminToken, cli.EnvMetricsToken: cli.MetricsToken,
	} {
		for _, c := range []struct {
			variable, file string // "-": no file
			want           string // empty: refused
		}{
			{"a", "-", ""},
			{" ", "-", ""},
			{"\n", "-", ""},
			{"               a", "-", ""},
			{strings.Repeat(" ", 40), "-", ""},
			{good[1:], "-", ""},
			{good, "-", good},
			{" " + good + "\n", "-", good},
			{"a", good + "\n", good},
			{"", "a", ""},
			{"", "", ""},
			{"", strings.Repeat("\n", 40), ""},
			{good, "a", ""},
		} {
			t.Setenv(variable, c.variable)
			file := ""
			if c.file != "-" {
				file = clitest.File(t, "token", c.file)
			}
			got, err := read(file)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%s=%q and the file %q: got %q, %v", variable, c.variable, c.file, got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "at least 16 characters") || c.file == "-" && !strings.Contains(err.Error(), variable)) {
				t.Errorf("%s=%q: %v does not say what to do", variable, c.variable, err)
			}
		}
		t.Setenv(variable, "")
		if got, err := read(""); got != "" || err != nil {
			t.Errorf("%s, without one: got %q, %v", variable, got, err)
		}
		if _, err := read(filepath.Join(t.TempDir(), "none")); err == nil {
			t.Errorf("%s: a file that is not there is no fault", variable)
		}
	}
}

func TestTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if cli.Terminal(f) || cli.Terminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
	if got := cli.Printable("evil\x1b[2J\r\nname"); got != "evil[2Jname" {
		t.Errorf("got %q", got)
	}
}
