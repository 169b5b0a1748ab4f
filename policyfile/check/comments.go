package check

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// directive is a comment that lifts findings of the line below it:
//
//	# forbear:ignore FC301 until=2027-03-01 the ledger drops repetitions by itself
//
// It stands on a line of its own. Without a reason or an end it lifts nothing: the
// next reader must be able to judge whether it still holds.
type directive struct {
	at     policyfile.Position
	line   int // that it covers
	ids    []string
	until  time.Time
	reason string
	used   bool
	margin string // the white space before it
	deeper bool   // it is further in than that line: a text that ends there may hold it
}

// mark begins a directive. What precedes it are the marks of comments in the
// notations that are read.
var mark = regexp.MustCompile(`^\s*(?:#|//|;)\s*forbear:ignore(?:\s+(.*))?$`)

// comment matches a line that holds nothing, or a comment alone.
var comment = regexp.MustCompile(`^\s*(?:(?:#|//|;).*)?$`)

// directives finds the directives of a file, each with the first line below it that
// says something.
func directives(name string, data []byte) (found []*directive) {
	if !bytes.Contains(data, []byte("forbear:ignore")) {
		return nil
	}
	waiting, number := 0, 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		if m := mark.FindStringSubmatch(text); m != nil {
			d := parseDirective(m[1])
			d.margin = margin(text)
			d.at = policyfile.Position{File: name, Line: number, Column: len(d.margin) + 1}
			found = append(found, d)
			continue
		}
		if comment.MatchString(text) {
			continue
		}
		for ; waiting < len(found); waiting++ {
			d, outer := found[waiting], margin(text)
			d.line, d.deeper = number, len(d.margin) > len(outer) && strings.HasPrefix(d.margin, outer)
		}
	}
	return found
}

// margin is the white space before a line.
func margin(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// parseDirective reads what stands behind forbear:ignore.
func parseDirective(text string) *directive {
	d := &directive{}
	words := strings.Fields(text)
	if len(words) > 0 {
		d.ids = strings.Split(words[0], ",")
		words = words[1:]
	}
	if len(words) > 0 {
		if day, ok := strings.CutPrefix(words[0], "until="); ok {
			if t, err := time.Parse(time.DateOnly, day); err == nil {
				d.until = t.AddDate(0, 0, 1) // the day is included
			}
			words = words[1:]
		}
	}
	d.reason = strings.Join(words, " ")
	return d
}

// fault says what keeps a directive from lifting anything, or "".
func (d *directive) fault(now time.Time) string {
	for _, id := range d.ids {
		rule, ok := RuleOf(id)
		switch {
		case !ok:
			return fmt.Sprintf("names %s, which is not a finding of check: see forbear rules list", id)
		case !ignorable(rule):
			return fmt.Sprintf("names %s, which no comment can lift", id)
		}
	}
	switch {
	case len(d.ids) == 0:
		return "names no finding: write forbear:ignore FC301 until=2027-03-01 REASON"
	case d.until.IsZero():
		return "has no end date: write until=2027-03-01 after the finding"
	case d.reason == "":
		return "has no reason: write one after the date"
	case d.deeper:
		return "is indented further than the line below it: align it with that line"
	case !now.Before(d.until):
		return "expired on " + lastDay(d.until)
	case d.until.Sub(now) > maxWaiver+24*time.Hour:
		return "lasts longer than 180 days: choose an earlier end"
	}
	return ""
}

// ignorable reports whether a comment may lift findings of a rule: not those about
// certificates and secrets, nor those about waivers and comments themselves.
func ignorable(x report.Rule) bool {
	return x.Standard != "R-9" && !strings.HasPrefix(x.ID, "FC9")
}

// line is a line of a file.
type line struct {
	file   string
	number int
}

// comments lets the directives of all files lift findings, and judges them. In a
// policy file they lift no rule of the standard: that takes a signed waiver.
func (r *run) comments() {
	if r.Settings != nil && r.Settings.NoComments {
		return
	}
	policies := map[string]bool{}
	all := map[string][]*directive{}
	covered := map[line][]*directive{}
	for _, s := range r.sources {
		if s.File.Format == "" {
			policies[s.File.Name] = true
		}
		if len(s.directives) > 0 {
			all[s.File.Name] = s.directives
		}
	}
	for name, directives := range all {
		for _, d := range directives {
			covered[line{name, d.line}] = append(covered[line{name, d.line}], d)
		}
	}
	if len(all) == 0 {
		return
	}
	for i := range len(r.findings) {
		f := r.findings[i]
		for _, d := range covered[line{f.File, f.Line}] {
			if !slices.Contains(d.ids, f.ID) || d.fault(r.Now) != "" {
				continue
			}
			d.used = true
			if policies[f.File] && f.rule.Waivable {
				r.add(commentInvalid.at(d.at, f.Subject, "a comment cannot lift %s in a policy file: use a signed waiver of %s", f.ID, f.Standard))
			} else if f.Suppressed == "" {
				f.Suppressed, f.InSource = fmt.Sprintf("comment until %s: %s", lastDay(d.until), d.reason), true
				r.findings[i] = f
			}
		}
	}
	for _, s := range r.sources {
		for _, d := range all[s.File.Name] {
			if fault := d.fault(r.Now); fault != "" {
				r.add(commentInvalid.at(d.at, "", "the comment %s", fault))
			} else if !d.used {
				r.add(commentUnused.at(d.at, "", "the comment lifts nothing: line %[2]d has no %[1]s%[3]s", strings.Join(d.ids, " or "), d.line, r.elsewhere(d)))
			}
		}
		delete(all, s.File.Name)
	}
}

// elsewhere says where in its file a finding stands that a directive names, for one that
// stands at another line.
func (r *run) elsewhere(d *directive) string {
	for _, f := range r.findings {
		if f.File == d.at.File && slices.Contains(d.ids, f.ID) {
			return fmt.Sprintf(", but on line %d", f.Line)
		}
	}
	return ""
}
