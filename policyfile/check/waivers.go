package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// The longest that a waiver may last, and how long before its end it is
// announced.
const (
	maxWaiver = 180 * 24 * time.Hour
	soon      = 14 * 24 * time.Hour
)

// judged is a waiver of a file, by its name in messages. It is valid when judging it added
// no finding. One that is not valid still counts as used where it would lift something:
// its own finding says what is wrong with it.
type judged struct {
	*policyfile.Waiver
	file  *policyfile.File
	name  string
	valid bool
}

// waivers judges the waivers of a file, and lets the valid ones lift what
// they name among the findings of that file, which are those from first to
// end. Those for the files of other software wait for the findings about them.
func (r *run) waivers(f *policyfile.File, first, end int) {
	if len(f.Waivers) == 0 {
		return
	}
	about := map[string][]int{}
	for i := first; i < end; i++ {
		about[r.findings[i].Subject] = append(about[r.findings[i].Subject], i)
	}
	for i := range f.Waivers {
		w := judged{Waiver: &f.Waivers[i], file: f, name: nameOf(&f.Waivers[i])}
		if w.Rule == "R-9" {
			continue // the reader has refused it
		}
		before := len(r.findings)
		r.waiver(f, w.Waiver, w.name)
		w.valid = len(r.findings) == before
		switch {
		case len(w.Files) > 0:
			r.fileWaivers = append(r.fileWaivers, w)
		case w.Dependency != "":
			r.liftOwn(w, about[w.Dependency])
		}
		if left := w.Expires.Sub(r.Now); left > 0 && left < soon {
			r.add(waiverEndsSoon.at(w.At, w.name, "waiver %s ends on %s", w.name, lastDay(w.Expires)))
		}
	}
}

// nameOf names a waiver in messages: by its id, or by what it lifts.
func nameOf(w *policyfile.Waiver) string {
	return cmp.Or(w.ID, w.Rule+" for "+cmp.Or(w.Dependency, strings.Join(w.Code, ", ")))
}

// WaiverFaults says why a waiver of f is not valid, for tools that apply
// waivers to something other than policies, such as the linter to code. It
// returns nil for a valid one. err says what could not be verified.
func WaiverFaults(f *policyfile.File, w *policyfile.Waiver, o Options) (faults []report.Finding, err error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r := &run{Options: o}
	r.waiver(f, w, nameOf(w))
	if w.Rule == "R-2" && !boardApproved(w) {
		r.add(waiverNeedsBoard.at(w.At, nameOf(w), "waiver %s of %s needs an approval with role: iab", nameOf(w), w.Rule))
	}
	return plain(r.findings), errors.Join(r.unjudged...)
}

// Relied returns the waivers of f without which d would break the standard, for tools that hand
// on what d says, such as an export. faults say what keeps a rule from being lifted, and err
// what could not be verified.
func Relied(f *policyfile.File, d *policyfile.Dependency, o Options) (relied []*policyfile.Waiver, faults []report.Finding, err error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	var errs []error
	seen := map[string]bool{}
	for _, v := range violation.Of(&d.Policy) {
		if v.Rule == "" || seen[v.Rule] {
			continue
		}
		seen[v.Rule] = true
		var lifts *policyfile.Waiver
		var why []report.Finding
		for i := range f.Waivers {
			w := &f.Waivers[i]
			if w.Rule != v.Rule || w.Dependency != d.Name || len(w.Files) > 0 || lifts != nil {
				continue
			}
			r := &run{Options: o}
			r.waiver(f, w, nameOf(w))
			if w.Rule == "R-2" && overRange(&d.Policy) && !boardApproved(w) {
				r.add(waiverNeedsBoard.at(w.At, nameOf(w), "waiver %s of the upper bound of %s needs an approval with role: iab", nameOf(w), d.Name))
			}
			if errs = append(errs, r.unjudged...); len(r.findings) == 0 {
				lifts = w
			}
			why = append(why, plain(r.findings)...)
		}
		if lifts != nil {
			relied = append(relied, lifts)
		} else {
			faults = append(faults, why...)
		}
	}
	return relied, faults, errors.Join(errs...)
}

// LastDay is the last day on which a waiver holds.
func LastDay(w *policyfile.Waiver) string { return lastDay(w.Expires) }

// waiver judges one waiver by itself. Its signatures are looked at last:
// those of an expired waiver are of no interest.
func (r *run) waiver(f *policyfile.File, w *policyfile.Waiver, name string) {
	for _, need := range []struct{ key, value string }{{"id", w.ID}, {"owner", w.Owner}, {"ticket", w.Ticket}} {
		if need.value == "" {
			r.add(waiverIncomplete.at(w.At, name, "waiver %s has no %s", name, need.key).keyed(need.key))
		}
	}
	switch {
	case w.Created.IsZero():
		r.add(waiverTooLong.at(w.At, name, "waiver %s has no start: set created", name))
	case w.Created.After(r.Now):
		r.add(waiverTooLong.at(w.At, name, "waiver %s was created on %s, which is in the future", name, w.Created.Format(time.DateOnly)))
	// The day of expiry is included, and Expires is the moment after it.
	case w.Expires.Sub(w.Created) > maxWaiver+24*time.Hour: // the last day counts
		r.add(waiverTooLong.at(w.At, name, "waiver %s lasts from %s to %s: want at most 180 days", name, w.Created.Format(time.DateOnly), lastDay(w.Expires)))
	}
	// Its approvals no longer matter: a new waiver needs new ones.
	if !r.Now.Before(w.Expires) {
		r.add(waiverExpired.at(w.At, name, "waiver %s has expired on %s", name, lastDay(w.Expires)))
		return
	}
	if len(w.Approvals) == 0 {
		r.add(waiverIncomplete.at(w.At, name, "waiver %s has no approval: forbear policy payload prints what to sign", name).keyed("approvals"))
		return
	}
	for i := range w.Approvals {
		r.approval(f, w, &w.Approvals[i], name)
	}
}

// approval judges one signature. The owner's own is refused by name first,
// then by key in verify.
func (r *run) approval(f *policyfile.File, w *policyfile.Waiver, a *policyfile.Approval, name string) {
	if strings.EqualFold(a.By, w.Owner) {
		r.add(waiverSelfApproved.at(a.At, name, "waiver %s is approved by its owner %s", name, a.By))
		return
	}
	if r.Unsigned {
		return
	}
	if a.Signature == "" || r.AllowedSigners == "" {
		// Both cases need a different remedy, and so a different message.
		what := "has no signature: forbear policy payload prints what to sign"
		if a.Signature != "" {
			what = "cannot be verified: give --allowed-signers FILE"
		}
		r.add(waiverSignature.at(a.At, name, "the approval of waiver %s by %s %s", name, a.By, what).keyed(a.By))
		return
	}
	err := verify(r.AllowedSigners, Payload(f, w), a, w.Owner)
	switch {
	case errors.Is(err, errSelf):
		r.add(waiverSelfApproved.at(a.At, name, "waiver %s is signed with a key of its owner %s", name, w.Owner))
	case errors.Is(err, errSignature):
		r.add(waiverSignature.at(a.At, name, "the signature of %s on waiver %s is not valid%s", a.By, name, roleNote(a)).keyed(a.By))
	case err != nil:
		r.unjudged = append(r.unjudged, fmt.Errorf("%s: waiver %s: %w", a.At, name, err))
		r.add(waiverSignature.at(a.At, name, "the signature of %s on waiver %s cannot be verified: %v", a.By, name, err).keyed(a.By))
	}
}

// roleNote reminds the reader that a role needs its own namespace, which is
// the usual reason for such a signature to be refused.
func roleNote(a *policyfile.Approval) string {
	if a.Role == "iab" {
		return " for role: iab"
	}
	return ""
}

// liftOwn lifts those of the findings about its dependency that w names, and reports a
// waiver that lifts none.
func (r *run) liftOwn(w judged, about []int) {
	d, ok := w.file.Dependency(w.Dependency)
	if !ok {
		r.add(waiverUnmatched.at(w.At, w.name, "waiver %s is for %s, which this file does not have", w.name, w.Dependency))
		return
	}
	used := false
	for _, i := range about {
		used = r.lift(w, i, overRange(&d.Policy)) || used
	}
	if !used && len(w.CodeIn(w.file)) == 0 { // forbear lint reports what is left of code
		r.add(waiverUnused.at(w.At, w.name, "waiver %s lifts nothing: %s does not break %s", w.name, w.Dependency, w.Rule))
	}
}

// liftForeign lets waivers for files lift what they name among the findings about
// other software. The files come from several sources, so that this waits for all.
func (r *run) liftForeign() {
	foreign := map[string]bool{}
	for _, s := range r.sources {
		if s.File.Format != "" {
			foreign[s.File.Name] = true
		}
	}
	for _, w := range r.fileWaivers {
		matched, used := false, false
		for name := range foreign {
			matched = matched || w.In(name)
		}
		for i := range len(r.findings) {
			if f := &r.findings[i]; foreign[f.File] && w.In(f.File) && (w.Dependency == "" || w.Dependency == f.Subject) {
				used = r.lift(w, i, true) || used
			}
		}
		// Files that are not part of this run may be part of the next.
		if matched && !used {
			r.add(waiverUnused.at(w.At, w.name, "waiver %s lifts nothing: its files do not break %s", w.name, w.Rule))
		}
	}
}

// lift lifts finding i when w names its rule, and reports whether it does. over says that
// a count is above its range, which takes the board's approval. A value of other software
// has to be named.
func (r *run) lift(w judged, i int, over bool) (used bool) {
	f := &r.findings[i]
	if !f.rule.Waivable || f.Standard != w.Rule {
		return false
	}
	switch {
	case f.value != "" && !slices.Contains(w.Lifts, f.value):
		r.add(waiverIncomplete.at(w.At, w.name, "waiver %s does not list %q in lifts, which %s needs", w.name, f.value, f.File).keyed(f.value))
	case f.rule == retryCount && over && !boardApproved(w.Waiver):
		r.add(waiverNeedsBoard.at(w.At, w.name, "waiver %s of the upper bound of %s needs an approval with role: iab", w.name, f.Subject))
	case w.valid:
		f.Suppressed = fmt.Sprintf("waiver %s until %s: %s", w.name, lastDay(w.Expires), w.Reason)
	}
	return true
}

// overRange reports whether a count is above its range, and not below. Only
// the upper bound of R-2 is reserved to the architecture board.
func overRange(p *forbear.Policy) bool {
	_, _, high := p.Kind.Range()
	if p.Kind == forbear.Webhook {
		return p.MaxAttempts > high
	}
	return p.MaxRetries > high
}

// boardApproved reports whether a member of the board has signed. Whether
// the signature holds is judged by approval.
func boardApproved(w *policyfile.Waiver) bool {
	return slices.ContainsFunc(w.Approvals, func(a policyfile.Approval) bool { return a.Role == "iab" })
}

// lastDay shows the last day of something that ends at t, which is
// exclusive.
func lastDay(t time.Time) string { return t.Add(-time.Nanosecond).Format(time.DateOnly) }
