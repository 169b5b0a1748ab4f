package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// BeyondTheProduct is the id of the finding that says what a product cannot hold: its
// related places have each rule in its own words.
const BeyondTheProduct = "FC002"

// merged makes one finding of those that say the same of many places, once it is known
// which of them a waiver or a comment lifts: what a product cannot do, whatever its files
// say, and which dependencies have a floor.
func merged(found []finding) (all []finding) {
	groups := map[string][]finding{}
	var order []string
	for _, f := range found {
		if f.Suppressed != "" || f.rule != beyondTheProduct && f.rule != quietClientFloor {
			all = append(all, f)
			continue
		}
		key := fmt.Sprint(f.ID, f.Severity)
		if f.rule == beyondTheProduct {
			key += f.Subject
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], f)
	}
	for _, key := range order {
		group := groups[key]
		slices.SortStableFunc(group, func(a, b finding) int { return byPlace(&a.Finding, &b.Finding) })
		if group[0].rule == beyondTheProduct {
			all = append(all, limitsOf(group))
		} else {
			all = append(all, floorsOf(group))
		}
	}
	return all
}

// limitsOf says once what a product cannot hold, each rule in its own words.
func limitsOf(group []finding) finding {
	one, files := group[0], map[string]bool{}
	slices.SortStableFunc(group, func(a, b finding) int { return cmp.Compare(a.Standard, b.Standard) })
	var rules []string
	said := map[string]bool{}
	for _, f := range group {
		files[f.File] = true
		if !slices.Contains(rules, f.Standard) {
			rules = append(rules, f.Standard)
		}
		if !said[f.Message] {
			said[f.Message] = true
			one.Related = append(one.Related, report.Place{File: f.File, Line: f.Line, Column: f.Column, Message: f.Standard + ": " + f.Message})
		}
	}
	one.Standard = ""
	if len(rules) == 1 {
		one.Standard = rules[0]
	}
	for i, rule := range rules {
		rules[i] = strings.TrimSpace(rule + " " + gist[rule])
	}
	one.Message = fmt.Sprintf("%s cannot hold %s, whatever is written", foreign.Title(one.Subject), list(rules))
	if len(files) > 1 {
		one.Message += fmt.Sprintf(" (in %d files)", len(files))
	}
	one.Identity = one.ID + "\x00" + one.Subject
	return one
}

// gist is what a rule of the standard asks for, in a few words.
var gist = map[string]string{
	"R-1": "(full jitter)", "R-2": "(a bounded count)", "R-3": "(a bound in time)", "R-4": "(final failures)", "R-5": "(Retry-After)",
	"R-6": "(writes with a key alone)", "R-7": "(a retry budget over 30 s)", "R-8": "(dead letters)", "R-9": "(no retry after a refused certificate)",
}

// floorsOf says once which dependencies quiet clients may retry beyond the budget's share.
func floorsOf(group []finding) finding {
	one := group[0]
	if len(group) == 1 {
		return one
	}
	const most = 5
	var names []string
	for _, f := range group {
		one.Identity += f.Fingerprint() + "\x00"
		if !slices.Contains(names, f.Subject) {
			names = append(names, f.Subject)
		}
	}
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", n))
	}
	one.Message = fmt.Sprintf("quiet clients may retry %s beyond the budget's share, as often as their floors say", list(names))
	return one
}

// list joins words as a sentence has them.
func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// gravest orders findings for a reader who stops at the tenth: errors first, and what holds
// for many files behind what holds for one.
func gravest(all []report.Finding) {
	late := func(f *report.Finding) int {
		return slices.Index([]string{quietClientFloor.ID, notJudged.ID, beyondTheProduct.ID}, f.ID)
	}
	slices.SortStableFunc(all, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(late(&a), late(&b)), byPlace(&a, &b))
	})
}

// byPlace orders findings as [report.Sort] does.
func byPlace(a, b *report.Finding) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
}
