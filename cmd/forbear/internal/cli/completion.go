package cli

import (
	"context"
	"flag"
	"regexp"
	"strings"
)

// completionCommand returns the command completion, whose Run needs the program.
func completionCommand() *Command {
	return &Command{
		Name:    "completion",
		Summary: "print a shell completion script",
		Usage:   "bash|zsh|fish|powershell",
		About: `
Completion prints a script that completes commands, verbs, flags and some values.

  bash        in ~/.bashrc: source <(forbear completion bash)
              (the package bash-completion must be installed)
  zsh         in ~/.zshrc, behind compinit: source <(forbear completion zsh)
  fish        forbear completion fish > ~/.config/fish/completions/forbear.fish
  powershell  in $PROFILE: forbear completion powershell | Out-String | Invoke-Expression`,
		Examples: `
forbear completion bash
forbear completion fish > ~/.config/fish/completions/forbear.fish
`,
	}
}

// completion returns the Run of completion. The scripts ask the installed forbear, so
// that they complete what it has, whenever they were printed.
func (p Program) completion(c *Command) func(context.Context, *Streams, []string) int {
	return func(_ context.Context, std *Streams, args []string) int {
		words, code, done := c.Operands(std, c.Flags(), args)
		switch {
		case done:
			return code
		case len(words) != 1:
			return std.Fail("completion: want one shell: %s (see forbear completion --help)", strings.Join(c.Verbs(), ", "))
		}
		root := p.Cobra(std, true)
		// A closed pipe is the reader's choice, as with head.
		switch words[0] {
		case "bash":
			_ = root.GenBashCompletionV2(std.Out, true)
		case "zsh":
			_ = root.GenZshCompletion(std.Out)
		case "fish":
			_ = root.GenFishCompletion(std.Out, true)
		case "powershell":
			_ = root.GenPowerShellCompletionWithDesc(std.Out)
		}
		return ExitOK
	}
}

// choiceList is how the usage of a flag lists the values that it takes: "text, json
// or csv", at the beginning or behind a colon, up to a semicolon, a bracket or the
// end. It may be what the usage quotes, and do without the or.
var choiceList = regexp.MustCompile("(?:^|: |`)([a-z][a-z0-9-]*(?:(?:, | or )[a-z][a-z0-9-]*)+)(?:$|;|`| \\()")

// Choices returns the values of a flag that takes one of a few, in the order in which
// its usage lists them, and nil for any other flag. The usage is the one place that
// says them: what --help shows is what a shell completes.
func Choices(fl *flag.Flag) []string {
	m := choiceList.FindStringSubmatch(fl.Usage)
	if m == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ")
}
