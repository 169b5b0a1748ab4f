package check

import (
	"fmt"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// finding is a finding with the rule that it is of. It is complete when it is added:
// only what lifts it, and the settings, change it afterwards.
type finding struct {
	report.Finding
	rule *rule
	// value is what a finding about other software rests on, as "max_retries 7".
	value string
}

// at makes a finding of the rule about subject, with the rule's own fix as its hint.
func (x *rule) at(at policyfile.Position, subject, format string, args ...any) finding {
	return finding{rule: x, Finding: report.Finding{
		ID: x.ID, Standard: x.Standard, Severity: x.Severity,
		File: at.File, Line: at.Line, Column: at.Column,
		Subject: subject, Message: fmt.Sprintf(format, args...), Hint: x.Fix,
	}}
}

// keyed tells f from others of its rule about the same subject.
func (f finding) keyed(key string) finding {
	f.Key = key
	return f
}

// degree says how bad f is, where that is a number.
func (f finding) degree(d float64) finding {
	f.Degree = d
	return f
}

// routed says which route to the dependency f is about: a baseline that knows the fault of
// one route does not know that of the next.
func (f finding) routed(route string) finding {
	if route != "" {
		f.Key = route + "\x00" + f.Key
	}
	return f
}

// in completes f as one about a route to a dependency of s. A fix that names fields of a
// policy file would not help the reader of an Envoy file, who gets the reason instead.
func (f finding) in(s Source, route string) finding {
	if s.File.Format != "" {
		f.Hint = f.rule.Why
	}
	return f.routed(route)
}

// add records findings.
func (r *run) add(f ...finding) { r.findings = append(r.findings, f...) }

// plain returns the findings for a report, in its order.
func plain(found []finding) []report.Finding {
	all := make([]report.Finding, 0, len(found))
	for _, f := range found {
		all = append(all, f.Finding)
	}
	gravest(all)
	return all
}
