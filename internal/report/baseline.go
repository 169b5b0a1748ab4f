package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Baseline is the list of known findings, and of files that are known not to be judged. Of
// findings only the fingerprints count; the rest tells people what they stand for. A
// baseline lets a project adopt the gate before it has fixed its old findings: those are
// suppressed, and new ones fail.
type Baseline struct {
	sarif    bool           // it names files as its own run did
	Schema   string         `json:"schema"`
	Findings []Known        `json:"findings"`
	Unjudged []KnownProblem `json:"unjudged,omitempty"`
}

// KnownProblem is a file of which a part is known not to be judged, such as a template.
type KnownProblem struct {
	File    string      `json:"file"`
	Kind    ProblemKind `json:"kind"`
	Message string      `json:"message"`
}

// Known is a finding that is known. It holds no line, so that an edit above a
// finding leaves the committed file as it is.
type Known struct {
	Fingerprint string `json:"fingerprint"`
	ID          string `json:"id"`
	File        string `json:"file"`
	Subject     string `json:"subject,omitzero"` // or the function
	Message     string `json:"message"`
	// Degree is that of the finding; 0 when there is none, or the baseline is older.
	Degree float64 `json:"degree,omitzero"`
}

// KnownToBaseline is why a finding does not count that a baseline has.
const KnownToBaseline = "known to the baseline"

// baselineVersion guards against a file of another kind or a later form: taken for a
// baseline, it would silently suppress nothing.
const baselineVersion = "forbear/baseline/v1"

// WriteBaseline writes r's findings, in an order that does not change with
// their lines. Findings that are already suppressed stay out: a waiver that expires
// must bring its finding back.
func (r *Report) WriteBaseline(w io.Writer) error {
	b := Baseline{Schema: baselineVersion, Findings: []Known{}}
	for _, f := range r.Counting() {
		f = r.placed(f)
		b.Findings = append(b.Findings, Known{f.Fingerprint(), f.ID, f.File, cmp.Or(f.Subject, f.Function), f.Message, f.Degree})
	}
	slices.SortFunc(b.Findings, func(x, y Known) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Subject, y.Subject), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Fingerprint, y.Fingerprint), cmp.Compare(y.Degree, x.Degree))
	})
	b.Findings = slices.CompactFunc(b.Findings, func(x, y Known) bool { return x.Fingerprint == y.Fingerprint })
	for _, p := range r.Problems {
		if r.lasting(&p) {
			b.Unjudged = append(b.Unjudged, KnownProblem{r.place(p.File), p.Kind, p.Message})
		}
	}
	slices.SortFunc(b.Unjudged, func(x, y KnownProblem) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Message, y.Message))
	})
	return encode(w, b)
}

// place is the name of a file in a baseline.
func (r *Report) place(file string) string {
	if r.Place == nil || file == "" {
		return file
	}
	return r.Place(file)
}

// placed is a finding as a baseline knows it.
func (r *Report) placed(f Finding) Finding {
	if to := r.place(f.File); to != f.File {
		f.Identity, f.Subject, f.Key = strings.ReplaceAll(f.Identity, f.File, to), strings.ReplaceAll(f.Subject, f.File, to), strings.ReplaceAll(f.Key, f.File, to)
		f.File = to
	}
	return f
}

// lasting reports whether a problem is of a file that was there, so that it may be the same
// in the next run. Standard input is another one each time.
func (r *Report) lasting(p *Problem) bool {
	return p.Fatal && p.File != "stdin" && slices.Contains(r.Files, p.File)
}

// ReadBaseline reads what [Report.WriteBaseline] wrote, or a report in SARIF. SARIF
// is accepted because many pipelines keep the report of the last run anyway. Results
// of other tools have no fingerprint of ours and are skipped.
func ReadBaseline(data []byte) (*Baseline, error) {
	var both struct {
		Baseline
		Runs []struct {
			Results []struct {
				RuleID       string            `json:"ruleId"`
				Fingerprints map[string]string `json:"partialFingerprints"`
				Properties   struct {
					Degree float64  `json:"degree"`
					Covers []string `json:"covers"`
				} `json:"properties"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(data, &both); err != nil {
		return nil, fmt.Errorf("the baseline cannot be read: %w", err)
	}
	if both.Schema != baselineVersion && both.Runs == nil {
		return nil, fmt.Errorf("the baseline is of schema %q: want %s, or SARIF", both.Schema, baselineVersion)
	}
	b := &both.Baseline
	b.sarif = both.Schema != baselineVersion
	for _, run := range both.Runs {
		for _, x := range run.Results {
			if print := x.Fingerprints[fingerprintKey]; print != "" {
				b.Findings = append(b.Findings, Known{Fingerprint: print, ID: x.RuleID, Degree: x.Properties.Degree})
				for _, print := range x.Properties.Covers {
					b.Findings = append(b.Findings, Known{Fingerprint: print})
				}
			}
		}
	}
	return b, nil
}

// Apply suppresses the findings that b knows, and marks the others as new. One that has
// become worse is new: ten times the retries are not what was accepted. A finding
// that a directive or a waiver suppresses keeps that reason: it says more than the
// baseline does.
func (b *Baseline) Apply(r *Report) {
	const slack = 1.001 // of degrees that are calculated
	known := map[string]float64{}
	for _, k := range b.Findings {
		if k.Degree == 0 {
			k.Degree = math.Inf(1)
		}
		known[k.Fingerprint] = max(known[k.Fingerprint], k.Degree)
	}
	// One that is known stands for one: a second of its kind is new.
	place, placed := r.place, r.placed
	if b.sarif {
		place, placed = func(file string) string { return file }, func(f Finding) Finding { return f }
	}
	left := map[KnownProblem]int{}
	for _, k := range b.Unjudged {
		left[k]++
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		if k := (KnownProblem{place(p.File), p.Kind, p.Message}); p.Fatal && left[k] > 0 {
			left[k]--
			p.Fatal, p.Known = false, true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Baseline = "new"
		at := placed(*f)
		if most, ok := known[at.Fingerprint()]; ok && f.Degree <= most*slack {
			f.Baseline = "unchanged"
			if f.Suppressed == "" {
				f.Suppressed = KnownToBaseline
			}
		}
	}
}
