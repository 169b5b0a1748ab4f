package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// Source is a policy file, or a foreign configuration that an adapter has
// read into the form of one.
type Source struct {
	File *policyfile.File
	// Refused is what [policyfile.Inspect] or the adapter found to break a
	// rule. It is judged and not fatal, because a waiver may lift it.
	Refused []*policyfile.Fault

	directives []*directive // of the file
	// refused are the fields of Refused, for [Run].
	refused map[refusal]bool
}

// refusal is a field of a dependency, or of a route to it, that was refused.
type refusal struct{ dependency, route, field string }

// withRefused returns the sources, each with its refused fields at hand.
func withRefused(sources []Source) []Source {
	sources = slices.Clone(sources)
	for i := range sources {
		s := &sources[i]
		s.refused = make(map[refusal]bool, len(s.Refused))
		for _, f := range s.Refused {
			s.refused[refusal{f.Dependency, f.Route, f.Field}] = true
		}
	}
	return sources
}

// Options are the circumstances of a run. The zero value checks as of now
// and without limits. It has no signers either, so that no waiver is valid.
type Options struct {
	// Now decides which waivers have expired; zero means the present.
	Now time.Time
	// AllowedSigners is the path of a file in the form of ssh-keygen(1).
	AllowedSigners string
	// Unsigned takes approvals at their word. It is for what runs a file that was
	// reviewed elsewhere, and does not know who may sign.
	Unsigned bool
	// MaxAmplification bounds the worst case with budgets, along any path; 0
	// sets no bound.
	MaxAmplification float64
	// MaxDuration bounds each synchronous call; 0 sets no bound.
	MaxDuration time.Duration
	// Incomplete says that some files could not be judged, so that the worst cases
	// are no upper bounds.
	Incomplete bool
	// Settings say how grave findings are; nil leaves all as it is.
	Settings *Settings
}

// Result is what a run found.
type Result struct {
	Findings []report.Finding
	// Loads has a row for each dependency.
	Loads []Load
	// Unjudged says what kept a part from being judged, such as a missing
	// ssh-keygen. Such a run does not pass: a gate that could not look must
	// not look green.
	Unjudged []error
	// Incomplete is that of the options.
	Incomplete bool
	// Off counts the findings that the settings leave out.
	Off int
}

// run gathers the findings of one Run. It is used by one goroutine.
type run struct {
	Options
	sources  []Source
	findings []report.Finding
	unjudged []error
	off      int
	// values holds the values that findings about other software rest on, by the
	// finding's index, as "max_retries 7".
	values      map[int]string
	fileWaivers []fileWaiver
}

// Run judges the sources together. The order matters: waivers come after the
// findings of their own file, and before those that concern several files,
// which no waiver of one of them can lift.
func Run(sources []Source, o Options) *Result {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r := &run{Options: o, sources: withRefused(sources), values: map[int]string{}}
	for _, s := range r.sources {
		// Findings from here on are this file's, which its waivers may
		// lift.
		first := len(r.findings)
		r.refused(s)
		r.file(s.File)
		for _, d := range s.File.All() {
			before := len(r.findings)
			r.dependency(s, d)
			r.routed(d.Route, r.findings[before:])
			if s.File.Format != "" {
				foreignHints(r.findings[before:])
			}
		}
		r.waivers(s.File, first, len(r.findings))
	}
	r.foreignWaivers()
	r.owners()
	r.keysMeet()
	loads := r.graph(r.layers())
	r.comments()
	r.settings()
	report.Sort(r.findings)
	return &Result{r.findings, loads, r.unjudged, r.Incomplete, r.off}
}

// foreignHints gives findings about other software the reason for a hint: a fix that
// names fields of a policy file would not help the reader of an Envoy file.
func foreignHints(found []report.Finding) {
	for i := range found {
		found[i].Hint = ruleOf(found[i].ID).Why
	}
}

// routed tells findings about routes to one dependency apart: a baseline that knows
// the fault of one route does not know that of the next.
func (r *run) routed(route string, found []report.Finding) {
	if route == "" {
		return
	}
	for i := range found {
		found[i].Key = route + "\x00" + found[i].Key
	}
}

// Worst returns the gravest severity among the findings that count; ok is
// false when there is none. Findings that a waiver lifts do not count.
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

// add records a finding of the given id about subject, with the rule's own
// fix as its hint. The pointer is for the caller to refine it at once: the
// next add may move the slice.
func (r *run) add(id string, at policyfile.Position, subject, format string, args ...any) *report.Finding {
	rule := ruleOf(id)
	r.findings = append(r.findings, report.Finding{
		ID: id, Standard: rule.Standard, Severity: rule.Severity,
		File: at.File, Line: at.Line, Column: at.Column,
		Subject: subject, Message: fmt.Sprintf(format, args...), Hint: rule.Fix,
	})
	return &r.findings[len(r.findings)-1]
}

// ruleOf is RuleOf for the ids of this package. An unknown one is a mistake
// in this code, and the tests reach every call.
func ruleOf(id string) report.Rule {
	rule, ok := RuleOf(id)
	if !ok {
		panic("no rule " + id)
	}
	return rule
}

// refused turns what the reader refused into findings.
func (r *run) refused(s Source) {
	for _, f := range s.Refused {
		rule := idOf(s.File, f)
		subject := cmp.Or(f.Dependency, s.File.Service)
		before := len(r.findings)
		found := r.add(rule, f.Position, subject, "%s", f.Message)
		found.Key = f.Field
		found.Degree = degree(s.File, f)
		if f.Value != "" {
			r.values[before] = f.Field + " " + f.Value
		}
		r.routed(f.Route, r.findings[before:])
		if rule == "FC001" && (s.File.Format == "" || f.Rule == "") {
			found.Severity = report.Error // it can be judged: the program refuses a file with it
		}
		if s.File.Format != "" {
			foreignHints(r.findings[before:])
		}
	}
	for _, f := range s.File.Limits {
		found := r.add("FC002", f.Position, s.File.Format, "%s", f.Message)
		found.Standard, found.Key = f.Rule, f.Rule
		if all := s.File.All(); len(all) > 0 && all[0].Policy.Kind.Durable() {
			found.Hint = "Let forbear deliver or consume it instead, switch the retries off, or have a waiver signed."
		}
	}
	for _, f := range s.File.Unjudged {
		r.add("FC001", f.Position, f.Dependency, "%s", f.Message).Key = f.Message
	}
	if f := s.File.Unread; f != nil {
		r.add("FC003", f.Position, "", "%s", f.Message).Key = f.Message
	}
}

// degree returns the value of a field of which more is worse, or 0 for another fault.
func degree(file *policyfile.File, f *policyfile.Fault) float64 {
	value := f.Value
	if d, ok := file.Dependency(f.Dependency); ok && file.Format == "" {
		value = d.Value(f.Field)
	}
	switch f.Field {
	case "max_retries", "max_attempts":
		n, _ := strconv.Atoi(value)
		return float64(n)
	case "total":
		d, _ := time.ParseDuration(value)
		return d.Seconds()
	case "budget.ratio":
		percent, _ := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
		return percent
	}
	return 0
}

// findingIDs are the findings by the field that breaks the rule. Where one field may break
// several rules, the rule stands behind it; a section stands for its fields.
var findingIDs = map[string]string{
	"budget":                "FC101",
	"budget.ratio":          "FC102",
	"budget.max_multiplier": "FC102",
	"budget.window":         "FC104",
	"backoff.cap R-7":       "FC104",
	"budget.min_retries":    "FC106",
	"budget.round_up":       "FC106",
	"max_retries":           "FC201",
	"max_attempts":          "FC201",
	"total":                 "FC202",
	"backoff.cap":           "FC203",
	"backoff.base":          "FC204",
	"backoff.jitter":        "FC205",
	"backoff.schedule":      "FC206",
	"total.missing":         "FC209",
	"retry_after":           "FC212",
	"methods":               "FC301",
	"idempotency.retention": "FC304",
	"classify":              "FC306",
	"dead_letter":           "FC401",
	"tls.verify":            "FC601",
	"url":                   "FC603",
	"secret":                "FC603",

	"credentials.secret":        "FC603",
	"credentials.client_secret": "FC603",
	"credentials.token_url":     "FC603",
	"health.endpoint":           "FC603",

	"classify R-9": "FC604",
	"breaker":      "FC701",
	"waivers.rule": "FC908",
}

// idOf returns the id of a broken rule. What has none of its own is FC001, so that
// it is shown all the same.
func idOf(file *policyfile.File, f *policyfile.Fault) string {
	if d, ok := file.Dependency(f.Dependency); ok && f.Field == "budget.min_retries" && !d.Policy.Strict {
		return "FC107" // nothing contradicts it: it is too high
	}
	section, _, _ := strings.Cut(f.Field, ".")
	if section != "classify" && section != "breaker" {
		section = f.Field
	}
	return cmp.Or(findingIDs[section+" "+f.Rule], findingIDs[section], "FC001")
}

// file judges what belongs to no single dependency.
func (r *run) file(f *policyfile.File) {
	for _, d := range f.Deprecated {
		r.add("FC004", d.Position, f.Service, "%s", d.Message).Key = d.Message
	}
	if f.Observability.NoMetrics {
		r.add("FC602", f.Place("observability.metrics"), f.Service, "the metrics of retries are switched off").Key = "metrics"
	}
	if f.Observability.NoLogs {
		r.add("FC602", f.Place("observability.logs"), f.Service, "the logs of retries are switched off").Key = "logs"
	}
	// Routes and the service's own promise belong to the file, whatever its
	// dependencies.
	r.servable(f)
	r.routes(f)
	r.ingress(f)
	r.keys(f.Idempotency, "idempotency", cmp.Or(f.Service, "the service"), f.Service, f.Place)
}
