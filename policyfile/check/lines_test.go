package check

import (
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

// freed matches an end of a cell behind backslashes that stand for themselves.
var freed = regexp.MustCompile(`[^\\](\\\\)+\|`)

// Names come from the files under review, and those of the files too. None of them
// begins a line of its own, which the runner of a pipeline could take for a command, or
// reaches the terminal as anything but text.
func TestNamesStayOnTheirLine(t *testing.T) {
	route := strings.Replace(strings.Replace(mesh, "HOST", `"b\n::error::| c \\| \e[31m"`, 1), "attempts: 2", "attempts: 9", 1)
	const name = "a`|\\|\n::error::d\x1b[1m.yaml"
	read := ReadAll([]Input{{Name: name, Data: []byte(route)}, {Name: "e" + name, Data: []byte("retries: 9"), Met: true}})
	result := Run(read.Sources, Options{Now: today})
	rep := &report.Report{Tool: "check", Findings: result.Findings, Problems: read.Problems}
	for format, write := range map[string]func(*strings.Builder) error{
		"text":     func(b *strings.Builder) error { return rep.Text(b) },
		"table":    func(b *strings.Builder) error { return Table(b, result) },
		"markdown": func(b *strings.Builder) error { return Markdown(b, read, rep, result) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if format == "markdown" && freed.MatchString(b.String()) {
			t.Errorf("a backslash frees the end of a cell: %q", b.String())
		}
		for _, bad := range []string{"\n::", "\x1b", "`|"} {
			if strings.Contains(b.String(), bad) && (bad != "`|" || format == "markdown") {
				t.Errorf("%s has %q: %q", format, bad, b.String())
			}
		}
	}
}
