package check

import (
	"cmp"
	"slices"
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
	sources     []Source
	findings    []finding
	unjudged    []error
	off         int
	fileWaivers []judged
}

// Run judges the sources together. The order matters: waivers come after the
// findings of their own file, and before those that concern several files,
// which no waiver of one of them can lift.
func Run(sources []Source, o Options) *Result {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r := &run{Options: o, sources: withRefused(sources)}
	for _, s := range r.sources {
		// Findings from here on are this file's, which its waivers may
		// lift.
		first := len(r.findings)
		r.refused(s)
		r.file(s.File)
		for _, d := range s.File.All() {
			r.dependency(s, d)
		}
		r.waivers(s.File, first, len(r.findings))
	}
	r.liftForeign()
	r.owners()
	r.keysMeet()
	loads := r.graph(r.layers())
	r.comments()
	r.settings()
	return &Result{plain(r.findings), loads, r.unjudged, r.Incomplete, r.off}
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

// file judges what belongs to no single dependency.
func (r *run) file(f *policyfile.File) {
	for _, d := range f.Deprecated {
		r.add(deprecatedKey.at(d.Position, f.Service, "%s", d.Message).keyed(d.Message))
	}
	if f.Observability.NoMetrics {
		r.add(silent.at(f.Place("observability.metrics"), f.Service, "retry metrics are turned off: drop observability.metrics: false").keyed("metrics"))
	}
	if f.Observability.NoLogs {
		r.add(silent.at(f.Place("observability.logs"), f.Service, "retry logs are turned off: drop observability.logs: false").keyed("logs"))
	}
	// Routes and the service's own promise belong to the file, whatever its
	// dependencies.
	r.servable(f)
	r.routes(f)
	r.bodies(f)
	r.ingress(f)
	r.keys(f.Idempotency, "idempotency", cmp.Or(f.Service, "the service"), f.Service, f.Place)
}
