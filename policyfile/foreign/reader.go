package foreign

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// reader gathers what the files of one product say. Every adapter is a method of
// it.
type reader struct {
	format  string
	parts   []Part
	beside  []Part   // of the product that this one is read with
	part    *Part    // the one that is read; see each
	names   []string // of the files, in order
	results map[string]*Result
	told    memory
}

// memory is what has been said: what holds for many places is said once.
type memory map[string]bool

// first reports whether it is asked about these for the first time.
func (m memory) first(about ...any) bool {
	key := fmt.Sprintf("%q", about)
	before := m[key]
	m[key] = true
	return !before
}

// each goes through the parts. What they name is looked up from the one that is read.
func (r *reader) each() iter.Seq[*Part] {
	return func(yield func(*Part) bool) {
		for i := range r.parts {
			if r.part = &r.parts[i]; !yield(r.part) {
				return
			}
		}
	}
}

// result returns what is known of a file. Format marks it: check judges what the
// format can express, and leaves out the rest.
func (r *reader) result(name string) *Result {
	found, ok := r.results[name]
	if !ok {
		found = &Result{File: &policyfile.File{Name: name, Format: r.format}}
		r.results[name] = found
		r.names = append(r.names, name)
	}
	return found
}

// refuse records a broken rule of a dependency. field is that of a policy
// file, by which package check finds the id. The fault belongs to the dependency's
// file, wherever the place is.
func (r *reader) refuse(at policyfile.Position, rule string, d *policyfile.Dependency, field, format string, args ...any) *policyfile.Fault {
	fault := &policyfile.Fault{
		Position: at, Rule: rule, Dependency: d.Name, Route: d.Route, Field: field,
		Message: d.Name + ": " + fmt.Sprintf(format, args...),
	}
	// Of a total that is there and cannot be read, a note says so.
	if f := r.result(d.At.File); field != "total.missing" || !slices.Contains(d.Lacks, field) {
		f.Refused = append(f.Refused, fault)
	}
	return fault
}

// cannot records a rule that the product cannot hold, whatever its file says. That
// is one note a file, at the first dependency that it concerns. field is what is
// missing to bound the worst case or an attempt, such as "budget", or "".
func (r *reader) cannot(d *policyfile.Dependency, rule, field, format string, args ...any) {
	if field != "" {
		d.Lacks = append(d.Lacks, field)
	}
	if !r.told.first(d.At.File, rule, field) {
		return
	}
	f := r.result(d.At.File).File
	f.Limits = append(f.Limits, &policyfile.Fault{Position: d.At, Rule: rule, Field: field, Message: fmt.Sprintf(format, args...)})
}

// unheeded records once a file that Retry-After is not heeded where a setting would see
// to it. The finding has the lines of the other places.
func (r *reader) unheeded(d *policyfile.Dependency, at policyfile.Position, format string, args ...any) {
	f := r.result(d.At.File)
	if len(f.unheeded) == 0 {
		r.refuse(at, "R-5", d, "retry_after", format, args...)
	}
	if !slices.Contains(f.unheeded, at.Line) {
		f.unheeded = append(f.unheeded, at.Line)
	}
}

// alsoIn adds to the finding of [reader.unheeded] the other lines that it is about, the
// first of them by their numbers.
func (f *Result) alsoIn() {
	const most = 4
	if len(f.unheeded) < 2 {
		return
	}
	others, more := f.unheeded[1:], ""
	if n := len(others) - most; n > 0 {
		others, more = others[:most], fmt.Sprintf(" and %d more", n)
	}
	i := slices.IndexFunc(f.Refused, func(f *policyfile.Fault) bool { return f.Rule == "R-5" })
	f.Refused[i].Message += fmt.Sprintf(" (and in line %s%s)", strings.ReplaceAll(strings.Trim(fmt.Sprint(others), "[]"), " ", ", "), more)
}

// unjudged records what an adapter cannot judge. It is shown as FC001, so
// that its silence is not taken for consent.
func (r *reader) unjudged(at policyfile.Position, dependency, format string, args ...any) {
	f := r.result(at.File).File
	f.Unjudged = append(f.Unjudged, &policyfile.Fault{
		Position: at, Dependency: dependency, Message: fmt.Sprintf(format, args...),
	})
}

// noted reports whether a place has a note already: several units may share a list or a key.
func (r *reader) noted(at policyfile.Position) bool {
	return slices.ContainsFunc(r.result(at.File).File.Unjudged, func(f *policyfile.Fault) bool { return f.Position == at })
}

// open is unjudged for what keeps the attempts of d from being counted: the worst
// case is at least what d says.
func (r *reader) open(at policyfile.Position, d *policyfile.Dependency, format string, args ...any) {
	d.AtLeast = true
	r.unjudged(at, d.Name, format, args...)
}

// fields are those whose ranges mean the same in every format. The others
// have no counterpart, and their defaults say nothing about the file.
var fields = []string{"max_retries", "total", "backoff.base", "backoff.cap", "budget.ratio"}

// add finishes a dependency: the ranges of the standard apply to it as to a
// policy file. The budget's own limits do not, except for its ratio, since
// adapters set nothing else of it; nor do those of the fields that the adapter has
// judged by itself.
func (r *reader) add(d policyfile.Dependency, judged ...string) {
	// Nothing bounds an attempt that has no time-out, within a call that has none.
	if d.Policy.PerAttempt == 0 && d.Policy.Total == 0 && d.Longest == 0 && !slices.Contains(d.Lacks, "per_attempt") {
		d.Lacks = append(d.Lacks, "per_attempt")
	}
	none := d.Policy.Disabled && !d.AtLeast // what holds for retries does not for a single attempt
	for _, v := range violation.Of(&d.Policy) {
		// An adapter that sets no window must not get a finding about one.
		if none || v.Rule == "" || slices.Contains(judged, v.Field) || v.Rule == "R-7" && v.Field != "budget.ratio" || !slices.Contains(fields, v.Field) {
			continue
		}
		at, _ := d.Place(v.Field)
		// Several routes may share a cluster, and so its budget.
		if v.Field != "budget.ratio" || r.told.first(d.At.File, at, d.Name) {
			// Other software has other words for a count, and may count the first attempt.
			text := v.Field + " " + v.Detail
			if v.Field == "max_retries" {
				text = strings.Replace(v.Detail, " is ", " retries are ", 1)
			}
			r.refuse(at, v.Rule, &d, v.Field, "%s", text).Value = d.Value(v.Field)
		}
	}
	f := r.result(d.At.File).File
	f.Dependencies = append(f.Dependencies, d)
}

// quiet counts a unit that retries nothing and needs no line of its own, such as a
// route without a retry policy.
func (r *reader) quiet(at policyfile.Position) { r.result(at.File).File.Quiet++ }

// unknown notes what a section has that the product's API does not: it is refused, or
// dropped without a word, and then something else holds than what is written.
func (r *reader) unknown(n *tree.Node, d *policyfile.Dependency, known ...string) {
	if n != nil && !n.Map() {
		r.unjudged(n.At, d.Name, "%s: this does not have the form of the API, and is not read", d.Name)
	}
	for _, p := range n.Fields() {
		if !slices.Contains(known, p.Key) {
			r.unjudged(p.At, d.Name, "%s: %s is not in the API, and is not read%s", d.Name, p.Key, nearest.Hint(p.Key, known, ""))
		}
	}
}

// keys is unknown for a section that several units share.
func (r *reader) keys(n *tree.Node, d *policyfile.Dependency, known ...string) {
	if n != nil && r.told.first(n.At, "keys") {
		r.unknown(n, d, known...)
	}
}

// retries sets the number of retries. None at all becomes Disabled, because
// zero means the default in a policy.
func retries(d *policyfile.Dependency, n int, at policyfile.Position) {
	d.SetPlace("max_retries", at)
	if d.Policy.Disabled = n <= 0; n > 0 {
		d.Policy.MaxRetries = n
	}
}

// once is refuse for what several units share, such as a cluster: one finding a place
// and field.
func (r *reader) once(at policyfile.Position, rule string, d *policyfile.Dependency, field, format string, args ...any) {
	if !slices.ContainsFunc(r.result(d.At.File).Refused, func(f *policyfile.Fault) bool {
		return f.Rule == rule && f.Field == field && f.Position == at
	}) {
		r.refuse(at, rule, d, field, format, args...)
	}
}

// anonymous returns an address without what stands before its @: a password may, and
// names are in every report.
func anonymous(address string) string {
	scheme, rest := "", address
	if i := strings.Index(address, "://"); i >= 0 {
		scheme, rest = address[:i+len("://")], address[i+len("://"):]
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}
