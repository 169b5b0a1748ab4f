package driver

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// report is what the renderers get.
type report struct {
	module   string
	findings []*Finding // those to be shown
	failOn   rule.Confidence
	packages int
}

func (r *report) failing() (n int) {
	for _, f := range r.findings {
		if f.fails(r.failOn) {
			n++
		}
	}
	return n
}

func (f *Finding) fails(on rule.Confidence) bool {
	return f.Suppressed == "" && f.Baseline != "unchanged" && f.confidence >= on
}

// writeText writes one line per finding and a summary.
func writeText(w io.Writer, r *report) error {
	var b strings.Builder
	for _, f := range r.findings {
		fmt.Fprintf(&b, "%s:%d:%d: %s (%s): %s", f.Place.File, f.Place.Line, f.Place.Column, f.Rule, f.Confidence, f.Message)
		if f.Suppressed != "" {
			fmt.Fprintf(&b, " [suppressed: %s]", f.Suppressed)
		}
		if f.Baseline == "unchanged" {
			b.WriteString(" [in the baseline]")
		}
		b.WriteByte('\n')
		for _, p := range f.Related {
			fmt.Fprintf(&b, "\t%s:%d:%d: %s\n", p.File, p.Line, p.Column, p.Message)
		}
	}
	fmt.Fprintf(&b, "%d packages, %d findings, %d of them fail\n", r.packages, len(r.findings), r.failing())
	_, err := io.WriteString(w, b.String())
	return err
}

// writeJSON writes the versioned JSON form.
func writeJSON(w io.Writer, r *report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	findings := r.findings
	if findings == nil {
		findings = []*Finding{}
	}
	return enc.Encode(struct {
		Version  int        `json:"version"`
		Module   string     `json:"module"`
		Packages int        `json:"packages"`
		FailOn   string     `json:"fail_on"`
		Failing  int        `json:"failing"`
		Findings []*Finding `json:"findings"`
	}{1, r.module, r.packages, r.failOn.String(), r.failing(), findings})
}

// writeGitHub writes workflow commands that annotate a pull request.
func writeGitHub(w io.Writer, r *report) error {
	for _, f := range r.findings {
		if f.Suppressed != "" {
			continue
		}
		level := "warning"
		if f.fails(r.failOn) {
			level = "error"
		}
		title := f.Rule
		if d, ok := lint.Explain(f.Rule); ok {
			title += " " + d.Title
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", level,
			property(f.Place.File), f.Place.Line, f.Place.Column, property(title), data(f.Message))
		if err != nil {
			return err
		}
	}
	return nil
}

func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes one test case per finding; those that do not fail are
// skipped ones.
func writeJUnit(w io.Writer, r *report) error {
	s := junitSuite{Name: "forbear lint " + r.module, Tests: len(r.findings)}
	for _, f := range r.findings {
		c := junitCase{Class: f.Package, Name: f.Rule + " " + f.Function, File: f.Place.File, Line: f.Place.Line}
		m := &junitMessage{Message: f.Message, Type: f.Confidence, Text: fmt.Sprintf("%s:%d", f.Place.File, f.Place.Line)}
		if f.fails(r.failOn) {
			c.Failure = m
			s.Failures++
		} else {
			m.Type = ""
			c.Skipped = m
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	if len(s.Cases) == 0 {
		s.Tests = 1
		s.Cases = []junitCase{{Class: r.module, Name: "no findings"}}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
