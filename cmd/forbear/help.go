package main

import "context"

func helpCommand() *command {
	c := &command{
		name:    "help",
		summary: "list the commands, or tell about one",
		usage:   "[COMMAND]",
		examples: `
forbear help
forbear help explain
`,
	}
	c.run = func(ctx context.Context, std *streams, args []string) int {
		f := c.flags()
		if code, done := c.parse(std, f, args, 1); done {
			return code
		}
		if f.NArg() == 0 {
			overview(std.out)
			return exitOK
		}
		about, ok := find(f.Arg(0))
		if !ok {
			return std.unknown(f.Arg(0))
		}
		return about.run(ctx, std, []string{"--help"})
	}
	return c
}
