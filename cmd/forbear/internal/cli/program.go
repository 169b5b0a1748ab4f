package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	completing := len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
	root := p.Cobra(std, completing)
	root.SetArgs(append([]string{}, args...)) // of nil it would make those of the process
	err := root.ExecuteContext(ctx)
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if err != nil {
		return std.Fail("%v (see forbear help)", err)
	}
	return ExitOK
}

// exit is the exit code of a command on its way through cobra.
type exit int

// Error implements error.
func (e exit) Error() string { return fmt.Sprint("exit code ", int(e)) }

// Cobra returns the program as cobra's commands. With flags they have all that shells
// complete and manual pages list. Without, which suffices for a run, each command
// parses its arguments itself.
func (p Program) Cobra(std *Streams, flags bool) *cobra.Command {
	root := &cobra.Command{
		Use: "forbear COMMAND [FLAGS]", Short: Motto, DisableFlagsInUseLine: true,
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit(p.unknown(std, args[0]))
			}
			p.overview(std.Err)
			return exit(ExitUsage)
		},
	}
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	for _, c := range p {
		cc := c.cobra(std, flags)
		root.AddCommand(cc)
		if c.Name == "help" {
			root.SetHelpCommand(cc)
			cc.ValidArgsFunction = first(p.names())
		}
	}
	return root
}

// cobra returns the command as one of cobra's.
func (c *Command) cobra(std *Streams, flags bool) *cobra.Command {
	cc := &cobra.Command{
		Use: strings.TrimSpace(c.Name + " " + c.Usage), Short: c.Summary, Long: strings.TrimSpace(c.About), Example: strings.TrimSpace(c.Examples),
		DisableFlagParsing: !flags, DisableFlagsInUseLine: true,
		RunE: func(cc *cobra.Command, args []string) error { return exit(c.Run(cc.Context(), std, args)) },
	}
	if !flags {
		return cc
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
	fmt.Fprint(w, "\nSee forbear COMMAND --help for flags and examples.\n"+
		"Exit codes: 0 pass, 1 findings or a negative answer, 2 could not judge.\n")
}
