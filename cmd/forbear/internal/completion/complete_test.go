package completion

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// program is a small one, so that lists can be compared whole.
func program() cli.Program {
	say := &cli.Command{Name: "say", Summary: "say it", Usage: "list [-o text|json] | loudly WORD"}
	say.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := say.Flags()
		f.String("o", "text", "output format: `text or json`")
		f.String("why", "", "the `reason`")
		f.Bool("loud", false, "say it loud")
		_, code, _ := say.Operands(std, f, args)
		return code
	}
	return cli.NewProgram(say, Command(program))
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct{ name, words, want string }{
		{"nothing yet", "", "say completion help"},
		{"a command", "s", "say"},
		{"no such command", "xyzzy|", ""},
		{"verbs", "say|", "list loudly"},
		{"a verb", "say|lo", "loudly"},
		{"a verb behind flags", "say|--why|x|--loud|l", "list loudly"},
		{"behind the verb", "say|list|", ""},
		{"all flags", "say|-", "--loud -o --why --help"},
		{"a flag", "say|list|--lo", "--loud"},
		{"a flag with one dash", "say|-lo", "--loud"},
		{"values", "say|-o|", "text json"},
		{"a value", "say|list|-o|j", "json"},
		{"a value behind an equals sign", "say|-o=j", "-o=json"},
		{"a value with one dash more", "say|--o=", "--o=text --o=json"},
		{"a free value", "say|--why|l", ""},
		{"a free value behind an equals sign", "say|--why=", ""},
		{"an unknown flag's", "say|--nope=", ""},
		{"a switch has no value", "say|--loud|", "list loudly"},
		{"behind the end of flags", "say|--|--lo", ""},
		{"the verb behind it", "say|--|l", "list loudly"},
		{"a command as operand", "help|s", "say"},
		{"itself", "completion|", "bash zsh fish words"},
	} {
		var got []string
		for _, c := range complete(program(), strings.Split(tt.words, "|")) {
			got = append(got, c.word)
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := complete(program(), nil); got != nil {
		t.Errorf("no words at all: got %q", got)
	}
}

func TestCommand(t *testing.T) {
	c := Command(program)
	for _, tt := range []struct {
		args, out, errors string
		code              int
	}{
		{"bash", "complete -o default -F _forbear forbear\n", "", 0},
		{"zsh", "#compdef forbear\n", "", 0},
		{"fish", "complete -c forbear", "", 0},
		{"words -- say --lo", "--loud\tsay it loud\n", "", 0},
		{"words -- say -o t", "text\n", "", 0},
		{"", "", "for which shell? want bash, zsh, fish", 2},
		{"fihs", "", "did you mean fish?", 2},
		{"bash zsh", "", `unexpected argument "zsh"`, 2},
	} {
		got := clitest.Run(t, c, "", strings.Fields(tt.args)...)
		if got.Code != tt.code || !strings.Contains(got.Out, tt.out) || !strings.Contains(got.Errors, tt.errors) {
			t.Errorf("%s: got %+v", tt.args, got)
		}
	}
}
