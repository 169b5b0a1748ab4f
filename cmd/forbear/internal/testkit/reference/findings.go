package reference

import (
	"strings"

	"github.com/forbear-go/forbear/policyfile/check"
)

// Findings returns the page of what forbear check finds.
func Findings() string {
	p := begin("Findings of forbear check", "`policyfile/check/rules.go`")
	p.line("What [`forbear check`](../guides/check.md) reports of policy files and of other software's settings; `forbear rules`\nshows the same. A rule that a waiver can lift says so.\n")
	for _, r := range check.Rules() {
		p.heading(2, r.ID)
		facts := []string{"`" + r.Name + "`", r.Severity.String()}
		switch {
		case strings.HasPrefix(r.Standard, "R-"):
			facts = append(facts, "["+r.Standard+"](../rules.md)")
		case r.Standard != "":
			facts = append(facts, r.Standard)
		}
		if r.Waivable {
			facts = append(facts, "waivable")
		}
		p.line("**%s** (%s)\n", plain(strings.ToUpper(r.Summary[:1])+r.Summary[1:]), strings.Join(facts, ", "))
		p.line("%s\n", plain(r.Why))
		p.line("*To do:* %s\n", plain(r.Fix))
	}
	return p.String()
}
