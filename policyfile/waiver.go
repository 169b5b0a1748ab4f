package policyfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Waiver lifts one rule for one dependency until a day. The library trusts
// the file: package check verifies, before the file gets that far, who
// signed the waiver and whether that person may.
type Waiver struct {
	ID             string `json:"id,omitzero"`
	forbear.Waiver `json:"-"`
	// Owner asks for the waiver and is responsible for it.
	Owner string `json:"owner,omitzero"`
	// Ticket is where it was discussed.
	Ticket string `json:"ticket,omitzero"`
	// Code are patterns of the source code in which the waiver lifts the rule
	// for forbear lint, as in [Lint].Code. It may stand instead of a dependency.
	Code []string `json:"code,omitempty"`
	// Files are patterns of the configuration of other software, as in
	// "mesh/**/*.yaml", in which the waiver lifts the rule for forbear check: for
	// the dependency alone when it names one, else for all of them. Such a waiver
	// lifts nothing in this file.
	Files []string `json:"files,omitempty"`
	// Lifts are the values of other software that the waiver allows, as in
	// "max_retries 7". A rule about a range needs them.
	Lifts     []string   `json:"lifts,omitempty"`
	Created   time.Time  `json:"-"`
	Approvals []Approval `json:"approvals,omitempty"`
	At        Position   `json:"-"`
}

// CodeIn returns the patterns of all source code in which w, of f, lifts its rule:
// its own, and those of the dependency.
func (w *Waiver) CodeIn(f *File) []string {
	return slices.Concat(w.Code, f.Lint.Code[w.Dependency])
}

// Approval is one approver's consent, with the signature that proves it.
type Approval struct {
	By string `json:"by"`
	// Role is "" or iab, the Integration Architecture Board.
	Role      string   `json:"role,omitzero"`
	Signature string   `json:"signature,omitzero"` // armored, of ssh-keygen -Y sign
	At        Position `json:"-"`
}

// rules are those of the standards that a waiver can lift. R-9 is missing:
// certificates cannot be waived.
var rules = []string{"R-1", "R-2", "R-3", "R-4", "R-5", "R-6", "R-7", "R-8", "R-10", "INTG-STD-033"}

// waivers reads the section of that name. A faulty waiver is left out and
// lifts nothing.
func (d *decoder) waivers(n *yaml.Node, dependencies []string) (found []Waiver) {
	for _, item := range d.Items(n, "waivers") {
		w := Waiver{At: d.At(item)}
		before := d.Count()
		d.Keys(item, "a waiver", fields{
			"id":         func(v *yaml.Node) { w.ID, _ = d.label(v, "id") },
			"rule":       func(v *yaml.Node) { d.rule(v, &w.Rule) },
			"dependency": func(v *yaml.Node) { d.waived(v, dependencies, &w.Dependency) },
			"code":       func(v *yaml.Node) { w.Code = d.texts(v, "code") },
			"files":      func(v *yaml.Node) { w.Files = d.globs(v, "files") },
			"lifts":      func(v *yaml.Node) { w.Lifts = d.texts(v, "lifts") },
			"reason":     func(v *yaml.Node) { d.Text(v, "reason", &w.Reason) },
			"owner":      func(v *yaml.Node) { d.Text(v, "owner", &w.Owner) },
			"ticket":     func(v *yaml.Node) { d.Text(v, "ticket", &w.Ticket) },
			"created": func(v *yaml.Node) {
				d.day(v, "created", &w.Created)
				if _, err := time.Parse(time.DateOnly, v.Value); err == nil {
					w.Created = w.Created.AddDate(0, 0, -1) // the day's beginning
				}
			},
			"expires":   func(v *yaml.Node) { d.day(v, "expires", &w.Expires) },
			"approvals": func(v *yaml.Node) { w.Approvals = d.approvals(v) },
		})
		// Checked before the required keys: a misspelt key is both unknown
		// and missing.
		if d.Count() > before {
			continue // a missing key would only repeat it
		}
		for _, need := range []struct {
			key     string
			missing bool
		}{
			{"rule", w.Rule == ""},
			{"dependency, code or files", w.Dependency == "" && len(w.Code)+len(w.Files) == 0},
			{"reason", w.Reason == ""},
			{"expires", w.Expires.IsZero()},
		} {
			if need.missing {
				d.Fault(item, "a waiver needs %s", need.key)
			}
		}
		found = append(found, w)
	}
	return found
}

// globs reads patterns of files.
func (d *decoder) globs(n *yaml.Node, what string) []string {
	found := d.texts(n, what)
	for _, p := range found {
		if !doublestar.ValidatePattern(p) {
			d.Fault(n, "%s has %s, which is not a pattern", what, strict.Quote(p))
		}
	}
	return found
}

// In reports whether a waiver for files is for the one of that name.
func (w *Waiver) In(file string) bool {
	return slices.ContainsFunc(w.Files, func(p string) bool {
		ok, _ := doublestar.Match(p, filepath.ToSlash(filepath.Clean(file)))
		return ok
	})
}

// approvals reads who has signed. Whether the signatures hold is checked by
// package check, which has the file of allowed signers.
func (d *decoder) approvals(n *yaml.Node) (found []Approval) {
	for _, item := range d.Items(n, "approvals") {
		a := Approval{At: d.At(item)}
		d.Keys(item, "an approval", fields{
			"by": func(v *yaml.Node) { d.Text(v, "by", &a.By) },
			"role": func(v *yaml.Node) {
				if _, ok := d.Choice(v, "role", "iab", "owner"); ok {
					a.Role = v.Value
				}
			},
			"signature": func(v *yaml.Node) {
				const most = 8 << 10
				if s, ok := d.Scalar(v, "signature", "an armored SSH signature"); ok && len(s) <= most {
					a.Signature = s
				} else if ok {
					d.Fault(v, "signature is longer than %d bytes", most)
				}
			},
		})
		found = append(found, a)
	}
	return found
}

// waived reads the dependency of a waiver. The gate reports one that is not in
// the file as unmatched.
func (d *decoder) waived(v *yaml.Node, dependencies []string, into *string) {
	if d.inspect {
		*into, _ = d.label(v, "dependency")
		return
	}
	d.dependency(v, dependencies, into)
}

// rule reads the rule that a waiver lifts. R-9 is refused and kept, so that
// the gate can name the waiver.
func (d *decoder) rule(v *yaml.Node, into *string) {
	s, ok := d.Scalar(v, "rule", "a rule such as R-2")
	switch {
	case !ok:
	case s == "R-9":
		d.refuse(d.At(v), "R-9", "", "waivers.rule", "R-9 (certificates and credentials) cannot be waived")
		*into = s
	case !slices.Contains(rules, s):
		d.Fault(v, "rule is %s: want a rule such as R-2", strict.Quote(s))
	default:
		*into = s
	}
}

// day reads the last day on which something holds, or a moment in RFC 3339.
// A day counts to its end, in UTC.
func (d *decoder) day(v *yaml.Node, what string, into *time.Time) {
	const want = "a day such as 2027-06-30"
	s, ok := d.Scalar(v, what, want)
	if !ok {
		return
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		*into = t.AddDate(0, 0, 1)
		return
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		d.Fault(v, "%s is %s: want %s", what, strict.Quote(s), want)
		return
	}
	*into = t
}

// waiver reports whether one of ws lifts a rule for a dependency. note
// mentions one that did until it expired, so that its owner learns why the
// gate fails today.
func waiver(ws []Waiver, rule, dependency string, now time.Time) (note string, waived bool) {
	for _, w := range ws {
		if len(w.Files) > 0 || rule == "" || rule == "R-9" || w.Rule != rule || w.Dependency != dependency || w.Reason == "" {
			continue
		}
		if w.Expires.IsZero() || now.Before(w.Expires) {
			return "", true
		}
		note = fmt.Sprintf(": its waiver expired on %s", w.Expires.Add(-time.Nanosecond).Format(time.DateOnly))
	}
	return note, false
}
