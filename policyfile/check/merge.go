package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// Merged makes one finding of those that say the same of many places, once it is known which
// of them a waiver, a comment or a baseline lifts: what a product cannot do, whatever its
// files say (FC002), and which dependencies have a floor (FC105). Its related places are all
// that it stands for, each in its own words.
func Merged(found []report.Finding) (all []report.Finding) {
	groups := map[string][]report.Finding{}
	var order []string
	for _, f := range found {
		key := fmt.Sprint(f.ID, f.Severity)
		switch {
		case f.Suppressed != "" || f.ID != beyondTheProduct.ID && f.ID != quietClientFloor.ID:
			all = append(all, f)
			continue
		case f.ID == beyondTheProduct.ID:
			key += f.Subject
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], f)
	}
	for _, key := range order {
		all = append(all, oneOf(groups[key]))
	}
	gravest(all)
	return all
}

// oneOf stands for all findings of a group. A baseline in SARIF knows each of them.
func oneOf(group []report.Finding) report.Finding {
	if len(group) == 1 && group[0].ID == quietClientFloor.ID {
		return group[0]
	}
	slices.SortStableFunc(group, func(a, b report.Finding) int { return byPlace(&a, &b) })
	one := group[0]
	for _, f := range group {
		one.Covers = append(one.Covers, f.Fingerprint())
	}
	one.Identity = one.ID + "\x00" + strings.Join(one.Covers, "\x00")
	if one.ID == beyondTheProduct.ID {
		limitsOf(&one, group)
	} else {
		floorsOf(&one, group)
	}
	return one
}

// limitsOf says once what a product cannot hold, by rule.
func limitsOf(one *report.Finding, group []report.Finding) {
	slices.SortStableFunc(group, func(a, b report.Finding) int { return cmp.Compare(a.Standard, b.Standard) })
	files := map[string]bool{}
	var rules []string
	for _, f := range group {
		files[f.File] = true
		if rule := strings.TrimSpace(f.Standard + " " + gist[f.Standard]); !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
		one.Related = append(one.Related, report.Place{File: f.File, Line: f.Line, Column: f.Column, Message: f.Standard + ": " + f.Message})
	}
	if one.Standard = ""; len(rules) == 1 {
		one.Standard = group[0].Standard
	}
	one.Message = fmt.Sprintf("%s cannot keep %s, whatever its file says", foreign.Title(one.Subject), list(rules))
	if len(files) > 1 {
		one.Message += fmt.Sprintf(" (in %d files)", len(files))
	}
}

// gist is what a rule of the standard asks for, in a few words.
var gist = map[string]string{
	"R-1": "(full jitter)", "R-2": "(a bounded count)", "R-3": "(a time limit)", "R-4": "(permanent failures)", "R-5": "(Retry-After)",
	"R-6": "(writes only with a key)", "R-7": "(a retry budget over 30 s)", "R-8": "(dead letters)", "R-9": "(no retry after a refused certificate)",
}

// floorsOf says once which dependencies quiet clients may retry beyond the budget's share.
func floorsOf(one *report.Finding, group []report.Finding) {
	const most = 5
	var names []string
	for _, f := range group {
		if !slices.Contains(names, f.Subject) {
			names = append(names, f.Subject)
		}
		one.Related = append(one.Related, report.Place{File: f.File, Line: f.Line, Column: f.Column, Message: f.Message})
	}
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", n))
	}
	one.Message = fmt.Sprintf("quiet clients may retry %s beyond the budget's share, up to their floors", list(names))
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
