package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Motto is what forbear is, in a line.
const Motto = "retries that know when to stop"

// Program is the list of its commands, in the order in which help shows them.
type Program []*Command

// NewProgram returns a program of the commands and of the two that are about all of
// them, completion and help.
func NewProgram(commands ...*Command) Program {
	p := append(Program{}, commands...)
	completion := completionCommand()
	help := &Command{
		Name:    "help",
		Summary: "list the commands, or explain one",
		Usage:   "[COMMAND]",
		Examples: `
forbear help
forbear help explain
`,
	}
	p = append(p, completion, help)
	completion.Run = p.completion(completion)
	help.Run = func(ctx context.Context, std *Streams, args []string) int {
		f := help.Flags()
		if code, done := help.Parse(std, f, args, 1); done {
			return code
		}
		if f.NArg() == 0 {
			p.overview(std.Out)
			return ExitOK
		}
		about, ok := p.Find(f.Arg(0))
		if !ok {
			return p.unknown(std, f.Arg(0))
		}
		return about.Run(ctx, std, []string{"--help"})
	}
	return p
}

// Run is the whole program, but for the process around it: signals and the exit
// are main's. args are those after the program's name. The flags that other
// programs have for help and version work too, with one dash as well.
func (p Program) Run(ctx context.Context, std *Streams, args []string) int {
	if len(args) > 0 {
		if name, ok := map[string]string{"-h": "help", "-help": "help", "--help": "help", "-version": "version", "--version": "version"}[args[0]]; ok {
			args = append([]string{name}, args[1:]...)
		}
	}
	switch {
	case len(args) == 0:
		p.overview(std.Err)
		return ExitUsage
	case strings.HasPrefix(args[0], cobra.ShellCompRequestCmd): // the script of a shell asks
		root := p.Cobra(std)
		root.SetArgs(args)
		if root.ExecuteContext(ctx) != nil {
			return ExitUsage
		}
		return ExitOK
	case strings.HasPrefix(args[0], "-"):
		return std.Fail("unknown flag: %s (see forbear help)", args[0])
	}
	c, ok := p.Find(args[0])
	if !ok {
		return p.unknown(std, args[0])
	}
	return c.Run(ctx, std, args[1:])
}

// Cobra returns the program as cobra's commands, with all that shells complete and manual
// pages list. They are not run.
func (p Program) Cobra(std *Streams) *cobra.Command {
	root := &cobra.Command{
		Use: "forbear COMMAND [FLAGS]", Short: Motto, DisableFlagsInUseLine: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	for _, c := range p {
		cc := c.cobra()
		root.AddCommand(cc)
		if c.Name == "help" {
			root.SetHelpCommand(cc)
			cc.ValidArgsFunction = first(p.names())
		}
	}
	return root
}

// cobra returns the command as one of cobra's.
func (c *Command) cobra() *cobra.Command {
	cc := &cobra.Command{
		Use: strings.TrimSpace(c.Name + " " + c.Usage), Short: c.Summary, Long: strings.TrimSpace(c.About), Example: strings.TrimSpace(c.Examples),
		DisableFlagsInUseLine: true,
		Run:                   func(*cobra.Command, []string) {}, // what cannot be run is not listed
	}
	if verbs := c.Verbs(); verbs != nil {
		cc.ValidArgsFunction = first(verbs)
	}
	c.Registered().VisitAll(func(f *flag.Flag) {
		cc.Flags().AddGoFlag(f)
		cc.Flags().Lookup(f.Name).Usage = strings.ReplaceAll(f.Usage, "`", "")
		if values := Choices(f); values != nil {
			_ = cc.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	return cc
}

// first completes the first operand by the words, and any other by the names of files.
func first(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, operands []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(operands) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// Find returns the command of that name.
func (p Program) Find(name string) (*Command, bool) {
	i := slices.IndexFunc(p, func(c *Command) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return p[i], true
}

// names lists the commands.
func (p Program) names() (names []string) {
	for _, c := range p {
		names = append(names, c.Name)
	}
	return names
}

// unknown refuses a command that does not exist, and names the nearest that does.
func (p Program) unknown(std *Streams, name string) int {
	return std.Fail("unknown command %q%s", name, nearest.Hint(name, p.names(), ": see forbear help"))
}

// overview lists the commands: what help prints, and a call without arguments.
func (p Program) overview(w io.Writer) {
	fmt.Fprint(w, "forbear: "+Motto+"\n\nUsage: forbear COMMAND [FLAGS]\n\nCommands:\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range p {
		fmt.Fprintf(table, "  %s\t%s\n", c.Name, c.Summary)
	}
	_ = table.Flush()
	fmt.Fprint(w, "\nforbear COMMAND --help says more, with examples.\n"+
		"Exit codes: 0 pass, 1 findings or a negative answer, 2 could not judge.\n")
}

// completionCommand returns the command completion, whose Run needs the program.
func completionCommand() *Command {
	return &Command{
		Name:    "completion",
		Summary: "print the script that completes command lines in a shell",
		Usage:   "bash|zsh|fish|powershell",
		About: `
Completion prints a script for the shell. It completes commands, verbs, flags and,
where a flag takes one of a few values, these.

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
		root := p.Cobra(std)
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
