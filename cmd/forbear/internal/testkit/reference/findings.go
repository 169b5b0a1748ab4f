package reference

import (
	"strings"

	"github.com/forbear-go/forbear/policyfile/check"
)

// Findings returns the page of what forbear check finds.
func Findings() string {
	p := begin("Findings of forbear check", "`policyfile/check/rules.go`")
	p.line("What [`forbear check`](../guides/check.md) reports about policy files and settings of other software.\n`forbear explain FC207` prints the same.\n")
	for _, r := range check.Rules() {
		p.heading(2, r.ID)
		facts := []string{"`" + r.Name + "`", r.Severity.String()}
		switch {
		case strings.HasPrefix(r.Standard, "R-"):
			facts = append(facts, "["+r.Standard+"](../rules.md)")
		}
		if r.Waivable {
			facts = append(facts, "waivable")
		}
		p.line("**%s** (%s)\n", plain(strings.ToUpper(r.Summary[:1])+r.Summary[1:]), strings.Join(facts, ", "))
		p.line("%s\n", plain(r.Why))
		p.line("*Fix:* %s\n", plain(r.Fix))
	}
	return p.String()
}
