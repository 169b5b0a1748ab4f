package man

import (
	"flag"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
	"github.com/forbear-go/forbear/internal/flaghint"
)

// page returns the manual page of one command.
func page(c *cli.Command, b version.Build) string {
	r := &roff{}
	r.begin("forbear-"+c.Name, c.Summary, b)
	r.section("SYNOPSIS")
	r.line(".B forbear " + literal(c.Name))
	if c.Usage != "" {
		r.line(literal(c.Usage))
	}
	if c.About != "" {
		r.section("DESCRIPTION")
		r.paragraphs(c.About)
	}
	r.section("OPTIONS")
	c.Registered().VisitAll(r.flag)
	r.tagged(`\fB\-\-help\fR`, "show this, and end")
	r.exitStatus()
	if c.Examples != "" {
		r.section("EXAMPLES")
		r.verbatim(strings.Split(strings.TrimSpace(c.Examples), "\n"))
	}
	r.section("SEE ALSO")
	r.line(".BR forbear (1)")
	return r.String()
}

// overview returns the page of the program, which leads to those of the commands.
func overview(p cli.Program, b version.Build) string {
	r := &roff{}
	r.begin("forbear", cli.Motto, b)
	r.section("SYNOPSIS")
	r.line(".B forbear")
	r.line("COMMAND [FLAGS]")
	r.section("COMMANDS")
	for _, c := range p {
		r.tagged(`\fBforbear\-`+literal(c.Name)+`\fR(1)`, c.Summary)
	}
	r.exitStatus()
	r.section("SEE ALSO")
	for i, c := range p {
		comma := ","
		if i == len(p)-1 {
			comma = ""
		}
		r.line(`.BR forbear\-` + literal(c.Name) + " (1)" + comma)
	}
	return r.String()
}

// begin writes the head of a page. Its date is that of the sources, so that one
// version has one page; a binary built without a checkout knows none.
func (r *roff) begin(name, summary string, b version.Build) {
	day, _, _ := strings.Cut(b.Time, "T")
	r.line(fmt.Sprintf(`.TH %s 1 "%s" "%s" "%s"`, literal(strings.ToUpper(name)), day, literal("forbear "+b.Version), "forbear manual"))
	r.section("NAME")
	r.line(literal(name) + ` \- ` + text(summary))
}

// flag writes what a flag takes and does, as --help does.
func (r *roff) flag(fl *flag.Flag) {
	value, usage := flag.UnquoteUsage(fl)
	tag := `\fB` + literal(flaghint.Dashed(fl.Name)) + `\fR`
	if value != "" {
		tag += ` \fI` + literal(value) + `\fR`
	}
	switch fl.DefValue {
	case "", "0", "0s", "false":
	default:
		usage += " (default " + fl.DefValue + ")"
	}
	r.tagged(tag, usage)
}

// exitStatus writes what all commands have in common.
func (r *roff) exitStatus() {
	r.section("EXIT STATUS")
	r.tagged("0", "pass")
	r.tagged("1", "findings, or a negative answer")
	r.tagged("2", "could not judge: bad usage, unreadable input")
}
