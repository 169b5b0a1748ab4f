package reference

import (
	"flag"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Commands returns the page of all commands and their flags.
func Commands(program cli.Program) string {
	p := begin("Commands", "the commands themselves")
	p.line("What `forbear COMMAND --help` and the manual pages say. Every command ends with one of three exit codes:\n")
	p.table([]string{"exit code", "meaning"}, [][]string{
		{"0", "pass"},
		{"1", "findings, or a negative answer"},
		{"2", "could not judge: bad usage, unreadable input"},
	})
	p.line("Flags are written with one dash or two. Some take their default from [the environment](environment.md).\n")
	var rows [][]string
	for _, c := range program {
		rows = append(rows, []string{"[`forbear " + c.Name + "`](#forbear-" + c.Name + ")", plain(c.Summary)})
	}
	p.table([]string{"command", "what it does"}, rows)
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
	var rows [][]string
	c.Registered().VisitAll(func(f *flag.Flag) {
		kind, usage := flag.UnquoteUsage(f)
		byDefault := f.DefValue
		if byDefault == "false" || byDefault == "[]" {
			byDefault = ""
		}
		rows = append(rows, []string{strings.TrimSpace(tick(strings.TrimSpace("--" + f.Name + " " + kind))), tick(byDefault), plain(usage)})
	})
	if len(rows) > 0 {
		p.table([]string{"flag", "default", "meaning"}, rows)
	}
	if c.Examples != "" {
		p.code("sh", c.Examples)
	}
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
