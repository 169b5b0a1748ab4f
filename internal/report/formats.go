package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Formats lists the names that [Report.Write] knows. The order is the one that help
// texts show.
func Formats() []string { return []string{"text", "json", "sarif", "github", "junit"} }

// Write writes r in the named format. The name comes from a flag, so an unknown one
// is an error that lists the choices.
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

// JSON writes everything, suppressed findings included. Counts are given beside the
// findings and problems, so that a script can gate on them without knowing what
// suppression is, or which problems are fatal.
// Lists are never null.
func (r *Report) JSON(w io.Writer) error {
	count := map[string]int{"error": 0, "warning": 0, "note": 0, "suppressed": 0, "problem": len(r.Problems), "fatal_problem": 0, "known_problem": 0}
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
	for _, p := range r.Problems {
		switch {
		case p.Fatal:
			count["fatal_problem"]++
		case p.Known:
			count["known_problem"]++
		}
	}
	return encode(w, struct {
		Schema   string         `json:"schema"`
		Tool     string         `json:"tool"`
		Files    []string       `json:"files"`
		Counts   map[string]int `json:"counts"`
		Findings []finding      `json:"findings"`
		Problems []Problem      `json:"problems"`
		Details  any            `json:"details,omitempty"`
	}{JSONVersion, r.Tool, append([]string{}, r.Files...), count, findings, append([]Problem{}, r.Problems...), r.Extra})
}

// encode leaves <, > and & as they are: messages quote source code, and no browser
// reads this output as HTML.
func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
