package man

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
)

// say is a command with all that roff could take for its own.
func say() *cli.Command {
	c := &cli.Command{
		Name: "say", Summary: "say it", Usage: "loudly WORD",
		About: "\n.dots and 'quotes' begin lines. So does\n--loud, a \\flag.\n\n  loudly  'as' it ~is^\n  .so\n\nIts end.",
		Examples: `
forbear say loudly 'it\s' --loud
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		f.Bool("loud", false, "say it loud")
		f.Int("times", 3, "say it this `often`")
		_, code, _ := c.Operands(std, f, args)
		return code
	}
	return c
}

func TestPage(t *testing.T) {
	const want = `.TH FORBEAR\-SAY 1 "2026-03-01" "forbear v1.2.3" "forbear manual"
.SH NAME
forbear\-say \- say it
.SH SYNOPSIS
.B forbear say
loudly WORD
.SH DESCRIPTION
\&.dots and 'quotes' begin lines.
So does \-\-loud, a \eflag.
.PP
.RS 4
.EX
loudly  \(aqas\(aq it \(tiis\(ha
\&.so
.EE
.RE
.PP
Its end.
.SH OPTIONS
.TP
\fB\-\-loud\fR
say it loud
.TP
\fB\-\-times\fR \fIoften\fR
say it this often (default 3)
.TP
\fB\-\-help\fR
show this, and end
.SH EXIT STATUS
.TP
0
pass
.TP
1
findings, or a negative answer
.TP
2
could not judge: bad usage, unreadable input
.SH EXAMPLES
.RS 4
.EX
forbear say loudly \(aqit\es\(aq \-\-loud
.EE
.RE
.SH SEE ALSO
.BR forbear (1)
`
	got := page(say(), version.Build{Version: "v1.2.3", Time: "2026-03-01T12:00:00Z"})
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func program() cli.Program { return cli.NewProgram(say(), Command(program)) }

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args, out, errors string
		code              int
	}{
		{"", "\n.SH COMMANDS\n.TP\n\\fBforbear\\-say\\fR(1)\nsay it\n", "", 0},
		{"say", "\nforbear\\-say \\- say it\n", "", 0},
		{"sya", "", `unknown command "sya": did you mean say?`, 2},
		{"say man", "", `unexpected argument "man"`, 2},
		{"--dir " + dir + " say", "", `unexpected argument "say"`, 2},
		{"--dir " + filepath.Join(dir, "none"), "", "no such file", 2},
		{"--dir " + dir, "", "", 0},
	} {
		got := clitest.Run(t, Command(program), "", strings.Fields(tt.args)...)
		if got.Code != tt.code || !strings.Contains(got.Out, tt.out) || !strings.Contains(got.Errors, tt.errors) {
			t.Errorf("%s: got %+v", tt.args, got)
		}
	}
	for _, name := range []string{"forbear", "forbear-say", "forbear-man", "forbear-help"} {
		if text, err := os.ReadFile(filepath.Join(dir, name+".1")); err != nil || !strings.HasPrefix(string(text), ".TH FORBEAR") {
			t.Errorf("%s.1: %v: %.20q", name, err, text)
		}
	}
}
