package reference

import (
	"flag"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Commands returns the page of all commands and their flags.
func Commands(program cli.Program) string {
	p := begin("Commands", "the commands themselves")
	p.line("The texts of `forbear COMMAND --help`. Exit codes: 0 pass, 1 findings or a negative answer, 2 could not judge (bad\nusage, unreadable input). Flags take one dash or two. Some have defaults from [the environment](environment.md).\n")
	var rows [][]string
	for _, c := range program {
		rows = append(rows, []string{"[`" + c.Name + "`](#forbear-" + c.Name + ")", plain(c.Summary)})
	}
	p.table([]string{"command", "purpose"}, rows)
	for _, c := range program {
		p.command(c)
	}
	return p.String()
}

func (p *page) command(c *cli.Command) {
	p.heading(2, "forbear "+c.Name)
	p.line("%s.\n", plain(strings.ToUpper(c.Summary[:1])+c.Summary[1:]))
	p.code("", strings.TrimSpace("forbear "+c.Name+" "+c.Usage))
	p.about(c.About)
	flags := false
	c.Registered().VisitAll(func(f *flag.Flag) {
		kind, usage := flag.UnquoteUsage(f)
		usage = plain(usage)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (default " + tick(f.DefValue) + ")"
		}
		p.line("- %s: %s", tick(dashes(f.Name)+strings.TrimSuffix(" "+kind, " ")), strings.Join(strings.Fields(usage), " "))
		flags = true
	})
	if flags {
		p.line("")
	}
	if c.Examples != "" {
		p.code("sh", c.Examples)
	}
}

// dashes are the name of a flag as it is written.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// about writes the paragraphs of a command's help. Lines that are indented are shown
// as they are.
func (p *page) about(text string) {
	shown := []string{}
	flush := func() {
		if len(shown) > 0 {
			p.line("")
			p.code("", strings.Join(shown, "\n"))
			shown = shown[:0]
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if after, ok := strings.CutPrefix(line, "  "); ok {
			shown = append(shown, after)
			continue
		}
		flush()
		p.line("%s", plain(line))
	}
	flush()
	p.line("")
}
