package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Motto is what forbear is, in a line.
const Motto = "retries that know when to stop"

// Program is the list of its commands, in the order in which help shows them. A
// handful of commands needs no map: the list keeps the order.
type Program []*Command

// NewProgram returns a program of the commands and of help, which it adds: help
// lists all commands, itself included, so that it is made with the list.
func NewProgram(commands ...*Command) Program {
	p := append(Program{}, commands...)
	help := &Command{
		Name:    "help",
		Summary: "list the commands, or explain one",
		Usage:   "[COMMAND]",
		Examples: `
forbear help
forbear help explain
`,
	}
	p = append(p, help)
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
			return p.Unknown(std, f.Arg(0))
		}
		return about.Run(ctx, std, []string{"--help"})
	}
	return p
}

// Run is the whole program, but for the process around it: signals and the exit
// are main's. args are those after the program's name. The flags that other
// programs have for help and version work too.
func (p Program) Run(ctx context.Context, std *Streams, args []string) int {
	if len(args) == 0 {
		p.overview(std.Err)
		return ExitUsage
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	c, ok := p.Find(name)
	if !ok {
		return p.Unknown(std, name)
	}
	return c.Run(ctx, std, args[1:])
}

// Find returns the command of that name.
func (p Program) Find(name string) (*Command, bool) {
	for _, c := range p {
		if c.Name == name {
			return c, true
		}
	}
	return nil, false
}

// Unknown refuses a command that does not exist, and names the nearest that does.
func (p Program) Unknown(std *Streams, name string) int {
	var names []string
	for _, c := range p {
		names = append(names, c.Name)
	}
	return std.Fail("unknown command %q%s", name, nearest.Hint(name, names, ": see forbear help"))
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
