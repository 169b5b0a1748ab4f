// Package man is the command man: manual pages, made of what --help shows.
package man

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
)

// Command returns the command man of a program, which it is part of itself.
func Command(program func() cli.Program) *cli.Command {
	c := &cli.Command{
		Name:    "man",
		Summary: "print a manual page, or write all of them",
		Usage:   "[--dir DIR] [COMMAND]",
		About: `
Man prints the manual page of a command, or that of forbear itself, for man(1).
With --dir it writes all pages into a folder that is there, as forbear.1,
forbear-check.1 and so on, for packages and images.`,
		Examples: `
forbear man check | man -l -
forbear man --dir /usr/local/share/man/man1
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		dir := f.String("dir", "", "write all pages into this `folder`")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) > 1 || len(words) == 1 && *dir != "":
			return std.Fail("man: unexpected argument %q (see forbear man --help)", words[len(words)-1])
		}
		p, b := program(), version.Read()
		if *dir != "" {
			if err := writeAll(*dir, p, b); err != nil {
				return std.Fail("man: %v", err)
			}
			return cli.ExitOK
		}
		text := overview(p, b)
		if len(words) == 1 {
			about, ok := p.Find(words[0])
			if !ok {
				return p.Unknown(std, words[0])
			}
			text = page(about, b)
		}
		// A closed pipe is the reader's choice, as with head.
		_, _ = io.WriteString(std.Out, text)
		return cli.ExitOK
	}
	return c
}

// writeAll writes the page of the program and that of each command.
func writeAll(dir string, p cli.Program, b version.Build) error {
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(dir, name+".1"), []byte(text), 0o644)
	}
	if err := write("forbear", overview(p, b)); err != nil {
		return err
	}
	for _, c := range p {
		if err := write("forbear-"+c.Name, page(c, b)); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}
