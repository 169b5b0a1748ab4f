package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Formats lists the names that [Report.Write] knows.
func Formats() []string { return []string{"text", "json", "sarif", "github", "junit"} }

// Write writes r in the named format.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "text":
		return r.Text(w)
	case "json":
		return r.JSON(w)
	case "sarif":
		return r.SARIF(w)
	case "github":
		return r.GitHub(w)
	case "junit":
		return r.JUnit(w)
	}
	return fmt.Errorf("unknown format %q: want %s", format, strings.Join(Formats(), ", "))
}

// JSONVersion is the version of the form that JSON writes. Fields may be added
// under the same version.
const JSONVersion = "forbear/report/v1"

// JSON writes everything, suppressed findings included.
func (r *Report) JSON(w io.Writer) error {
	count := map[string]int{"error": 0, "warning": 0, "note": 0, "suppressed": 0}
	type finding struct {
		Finding
		Fingerprint string `json:"fingerprint"`
	}
	findings := []finding{}
	for _, f := range r.Findings {
		findings = append(findings, finding{f, f.Fingerprint()})
		if f.Suppressed != "" {
			count["suppressed"]++
		} else {
			count[f.Severity.String()]++
		}
	}
	return encode(w, struct {
		Schema   string         `json:"schema"`
		Tool     string         `json:"tool"`
		Files    []string       `json:"files"`
		Counts   map[string]int `json:"counts"`
		Findings []finding      `json:"findings"`
		Details  any            `json:"details,omitempty"`
	}{JSONVersion, r.Tool, r.Files, count, findings, r.Extra})
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type m = map[string]any

// SARIF writes SARIF 2.1.0. Suppressed findings are left out, since code hosts
// show them all the same.
func (r *Report) SARIF(w io.Writer) error {
	rules, index := []m{}, map[string]int{}
	for i, x := range r.Rules {
		index[x.ID] = i
		rules = append(rules, m{
			"id": x.ID, "name": pascal(x.Name),
			"shortDescription":     m{"text": x.Summary},
			"fullDescription":      m{"text": x.Summary},
			"help":                 m{"text": x.Why + "\n\n" + x.Fix, "markdown": x.Why + "\n\n**Fix:** " + x.Fix},
			"defaultConfiguration": m{"level": x.Severity.String()},
			"properties":           m{"standard": x.Standard, "tags": []string{"retry", "reliability"}},
		})
	}
	results := []m{}
	for _, f := range r.Counting() {
		text := f.Message
		if f.Hint != "" {
			text += ". " + f.Hint
		}
		where := m{"artifactLocation": m{"uri": filepath.ToSlash(f.File), "uriBaseId": "%SRCROOT%"}}
		if filepath.IsAbs(f.File) {
			where = m{"artifactLocation": m{"uri": "file://" + filepath.ToSlash(f.File)}}
		}
		if f.Line > 0 {
			where["region"] = m{"startLine": f.Line, "startColumn": max(f.Column, 1)}
		}
		result := m{
			"ruleId": f.ID, "level": f.Severity.String(), "message": m{"text": line(text)},
			"locations":           []m{{"physicalLocation": where}},
			"partialFingerprints": m{"forbear/v1": f.Fingerprint()},
		}
		if i, ok := index[f.ID]; ok {
			result["ruleIndex"] = i
		}
		results = append(results, result)
	}
	run := m{
		"tool": m{"driver": m{
			"name": "forbear", "semanticVersion": r.Version, "informationUri": "https://github.com/forbear-go/forbear", "rules": rules,
		}},
		"automationDetails": m{"id": "forbear/" + r.Tool},
		"columnKind":        "unicodeCodePoints",
		"invocations":       []m{{"executionSuccessful": true}},
		"results":           results,
	}
	if r.Root != "" {
		run["originalUriBaseIds"] = m{"%SRCROOT%": m{"uri": r.Root}}
	}
	return encode(w, m{
		"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		"version": "2.1.0",
		"runs":    []m{run},
	})
}

func pascal(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// GitHub writes workflow commands, which become annotations.
func (r *Report) GitHub(w io.Writer) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	var b strings.Builder
	for _, f := range r.Counting() {
		level := map[Severity]string{Error: "error", Warning: "warning", Note: "notice"}[f.Severity]
		fmt.Fprintf(&b, "::%s file=%s", level, property.Replace(f.File))
		if f.Line > 0 {
			fmt.Fprintf(&b, ",line=%d,col=%d", f.Line, max(f.Column, 1))
		}
		text := f.Message
		if f.Hint != "" {
			text += "\n" + f.Hint
		}
		fmt.Fprintf(&b, ",title=%s::%s\n", property.Replace(f.ID+after(" ", f.Standard)), data.Replace(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []junitSuite
}

type junitSuite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Cases    []junitCase
}

type junitCase struct {
	XMLName xml.Name      `xml:"testcase"`
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a suite for each file. Errors are failures; what is less is told
// in the output of a passed case. A file without findings has one passed case.
func (r *Report) JUnit(w io.Writer) error {
	var doc junitSuites
	for _, name := range r.Files {
		s := junitSuite{Name: name}
		for _, f := range r.Counting() {
			if f.File != name {
				continue
			}
			c := junitCase{Class: name, Name: f.ID + after(" ", f.Subject)}
			text := fmt.Sprintf("%s: %s%s", place(&f), line(f.Message), after("\n", f.Hint))
			if f.Severity == Error {
				c.Failure = &junitFailure{f.ID + after(" ", f.Standard), line(f.Message), text}
				s.Failures++
			} else {
				c.Out = f.Severity.String() + ": " + text
			}
			s.Cases = append(s.Cases, c)
		}
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Class: name, Name: "no findings"}}
		}
		s.Tests = len(s.Cases)
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Baseline is the list of fingerprints of what is known already.
type Baseline struct {
	Schema       string   `json:"schema"`
	Fingerprints []string `json:"fingerprints"`
}

const baselineVersion = "forbear/baseline/v1"

// WriteBaseline writes the fingerprints of r's findings, sorted.
func (r *Report) WriteBaseline(w io.Writer) error {
	b := Baseline{Schema: baselineVersion, Fingerprints: []string{}}
	for _, f := range r.Counting() {
		b.Fingerprints = append(b.Fingerprints, f.Fingerprint())
	}
	slices.Sort(b.Fingerprints)
	b.Fingerprints = slices.Compact(b.Fingerprints)
	return encode(w, b)
}

// ReadBaseline reads what [Report.WriteBaseline] wrote.
func ReadBaseline(data []byte) (*Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("the baseline cannot be read: %w", err)
	}
	if b.Schema != baselineVersion {
		return nil, fmt.Errorf("the baseline is of schema %q: want %s", b.Schema, baselineVersion)
	}
	return &b, nil
}

// Apply suppresses the findings that b knows.
func (b *Baseline) Apply(r *Report) {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Suppressed == "" && slices.Contains(b.Fingerprints, f.Fingerprint()) {
			f.Suppressed = "known to the baseline"
		}
	}
}
