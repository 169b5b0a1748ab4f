package check

import (
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/policyfile"
)

// fileWaiver is a waiver for the configuration of other software.
type fileWaiver struct {
	file  *policyfile.File // that it stands in
	w     *policyfile.Waiver
	name  string
	valid bool
}

// foreignWaivers lets waivers for files lift what they name among the findings about
// other software. The files come from several sources, so that this waits for all.
func (r *run) foreignWaivers() {
	foreign := map[string]bool{}
	for _, s := range r.sources {
		if s.File.Format != "" {
			foreign[s.File.Name] = true
		}
	}
	for _, fw := range r.fileWaivers {
		matched, used := false, false
		for name := range foreign {
			matched = matched || fw.w.In(name)
		}
		for i := range len(r.findings) {
			if f := &r.findings[i]; foreign[f.File] && fw.w.In(f.File) {
				used = r.liftForeign(fw, i) || used
			}
		}
		// Files that are not part of this run may be part of the next.
		if matched && !used {
			r.add(waiverUnused.at(fw.w.At, fw.name, "waiver %s lifts nothing: its files do not break %s", fw.name, fw.w.Rule))
		}
	}
}

// liftForeign lifts one finding, when the waiver is for it. A waiver that is not
// valid counts as used: its own finding says what is wrong with it.
func (r *run) liftForeign(fw fileWaiver, i int) (used bool) {
	f, w := &r.findings[i], fw.w
	if !f.rule.Waivable || f.Standard != w.Rule || w.Dependency != "" && f.Subject != w.Dependency {
		return false
	}
	switch {
	case f.value != "" && !slices.Contains(w.Lifts, f.value):
		r.add(waiverIncomplete.at(w.At, fw.name, "waiver %s does not say that it lifts %q, which is what %s has", fw.name, f.value, f.File).keyed(f.value))
	case f.rule == retryCount && !boardApproved(w):
		r.add(waiverNeedsBoard.at(w.At, fw.name, "waiver %s lifts the upper bound of %s without the board's approval", fw.name, f.Subject))
	case fw.valid:
		f.Suppressed = fmt.Sprintf("waiver %s until %s: %s", fw.name, lastDay(w.Expires), w.Reason)
	}
	return true
}
