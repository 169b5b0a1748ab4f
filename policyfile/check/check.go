package check

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// Source is a policy file, or a foreign configuration that an adapter has read.
type Source struct {
	File *policyfile.File
	// Refused is what [policyfile.Inspect] or the adapter set apart.
	Refused []*policyfile.Fault
}

// Options are the circumstances of a run. The zero value checks as of now,
// without limits, and without signers: then no waiver is valid.
type Options struct {
	Now time.Time
	// AllowedSigners is the path of a file in the form of ssh-keygen(1).
	AllowedSigners string
	// MaxAmplification bounds the worst case with budgets, along any path; 0
	// sets no bound.
	MaxAmplification float64
	// MaxDuration bounds each synchronous call; 0 sets no bound.
	MaxDuration time.Duration
}

// Result is what a run found.
type Result struct {
	Findings []report.Finding
	// Loads has a row for each dependency.
	Loads []Load
	// Unjudged says what kept a part from being judged, such as a missing
	// ssh-keygen. Such a run does not pass.
	Unjudged []error
}

// run gathers the findings of one Run.
type run struct {
	Options
	sources  []Source
	findings []report.Finding
	unjudged []error
	// simulated holds the simulator's results, by policy.
	simulated map[string]storm.Summary
}

// Run judges the sources together.
func Run(sources []Source, o Options) *Result {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r := &run{Options: o, sources: sources}
	for _, s := range sources {
		first := len(r.findings)
		r.refused(s)
		r.file(s.File)
		for _, d := range s.File.All() {
			r.dependency(s, d)
		}
		r.waivers(s.File, first, len(r.findings))
	}
	r.owners()
	loads := r.graph()
	report.Sort(r.findings)
	return &Result{r.findings, loads, r.unjudged}
}

// Worst returns the gravest severity among the findings that count; ok is false
// when none does.
func (r *Result) Worst() (worst report.Severity, ok bool) {
	for _, f := range r.Findings {
		if f.Suppressed == "" {
			worst, ok = max(worst, f.Severity), true
		}
	}
	return worst, ok
}

// Err joins what could not be judged.
func (r *Result) Err() error { return errors.Join(r.Unjudged...) }

// add notes a finding of the given id about subject, with the rule's own fix as
// its hint.
func (r *run) add(id string, at policyfile.Position, subject, format string, args ...any) *report.Finding {
	rule := ruleOf(id)
	r.findings = append(r.findings, report.Finding{
		ID: id, Standard: rule.Standard, Severity: rule.Severity,
		File: at.File, Line: at.Line, Column: at.Column,
		Subject: subject, Message: fmt.Sprintf(format, args...), Hint: rule.Fix,
	})
	return &r.findings[len(r.findings)-1]
}

func ruleOf(id string) report.Rule {
	rule, ok := RuleOf(id)
	if !ok {
		panic("no rule " + id)
	}
	return rule
}

// refused turns what the reader set apart into findings.
func (r *run) refused(s Source) {
	for _, f := range s.Refused {
		rule := idOf(f)
		subject := cmp.Or(f.Dependency, s.File.Service)
		found := r.add(rule, f.Position, subject, "%s", f.Message)
		found.Key = f.Field
		if s.File.Format != "" {
			found.Hint = ruleOf(rule).Why // the fix speaks of policy files
		}
	}
	for _, f := range s.File.Unjudged {
		r.add("FC001", f.Position, f.Dependency, "%s", f.Message).Key = f.Message
	}
}

// idOf returns the id of a broken rule, by the field that breaks it.
func idOf(f *policyfile.Fault) string {
	switch f.Field {
	case "budget":
		return "FC101"
	case "budget.ratio", "budget.max_multiplier":
		return "FC102"
	case "budget.window":
		return "FC104"
	case "budget.min_retries", "budget.round_up":
		return "FC106"
	case "max_retries", "max_attempts":
		return "FC201"
	case "total":
		return "FC202"
	case "total.missing":
		return "FC209"
	case "backoff.cap":
		if f.Rule == "R-7" {
			return "FC104"
		}
		return "FC203"
	case "backoff.base":
		return "FC204"
	case "backoff.jitter":
		return "FC205"
	case "backoff.schedule":
		return "FC206"
	case "methods":
		return "FC301"
	case "idempotency.retention":
		return "FC304"
	case "tls.verify":
		return "FC601"
	case "url", "secret":
		return "FC603"
	case "waivers.rule":
		return "FC908"
	}
	switch {
	case strings.HasPrefix(f.Field, "classify") && f.Rule == "R-9":
		return "FC604"
	case strings.HasPrefix(f.Field, "classify"):
		return "FC306"
	case strings.HasPrefix(f.Field, "breaker"):
		return "FC701"
	}
	return "FC001"
}

// file judges what belongs to no dependency.
func (r *run) file(f *policyfile.File) {
	if f.Observability.NoMetrics {
		r.add("FC602", f.Place("observability.metrics"), f.Service, "the metrics of retries are switched off").Key = "metrics"
	}
	if f.Observability.NoLogs {
		r.add("FC602", f.Place("observability.logs"), f.Service, "the logs of retries are switched off").Key = "logs"
	}
	r.ingress(f)
	r.keys(f.Idempotency, "idempotency", cmp.Or(f.Service, "the service"), f.Service, f.Place)
}
