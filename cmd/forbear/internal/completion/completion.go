// Package completion is the command completion: what a shell offers when Tab is
// pressed. The scripts that it prints are a few lines that ask forbear itself, so
// that they complete what the installed forbear has, whenever they were printed.
package completion

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

//go:embed forbear.bash forbear.zsh forbear.fish
var scripts embed.FS

// Command returns the command completion of a program, which it is part of itself.
func Command(program func() cli.Program) *cli.Command {
	c := &cli.Command{
		Name:    "completion",
		Summary: "print the script that completes command lines in a shell",
		Usage:   "bash|zsh|fish | words -- [WORD]...",
		About: `
Completion prints a script for the shell, which completes commands, verbs, flags
and, where a flag takes one of a few, its values.

  bash   in ~/.bashrc: source <(forbear completion bash)
  zsh    in ~/.zshrc, behind compinit: source <(forbear completion zsh)
  fish   forbear completion fish > ~/.config/fish/completions/forbear.fish

Words is what the scripts ask: it prints what the last word of a command line may
be, given those before it, with a tab and a description behind each.`,
		Examples: `
forbear completion bash
forbear completion fish > ~/.config/fish/completions/forbear.fish
forbear completion words -- check --max-
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		words, code, done := c.Operands(std, c.Flags(), args)
		switch {
		case done:
			return code
		case len(words) == 0:
			return std.Fail("completion: for which shell? want %s (see forbear completion --help)", strings.Join(c.Verbs()[:3], ", "))
		case words[0] == "words":
			for _, w := range complete(program(), words[1:]) {
				fmt.Fprintln(std.Out, w)
			}
			return cli.ExitOK
		case len(words) > 1:
			return std.Fail("completion: unexpected argument %q (see forbear completion --help)", words[1])
		}
		script, err := scripts.ReadFile("forbear." + words[0])
		if err != nil {
			return std.Fail("completion: %v", err)
		}
		// A closed pipe is the reader's choice, as with head.
		_, _ = std.Out.Write(script)
		return cli.ExitOK
	}
	return c
}
