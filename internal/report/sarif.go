package report

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// fingerprintKey names our fingerprint. GitHub's own key,
// primaryLocationLineHash, is left to GitHub, which computes it when absent.
const fingerprintKey = "forbear/v1"

// m is a JSON object. SARIF has hundreds of types of which this package needs a
// handful; maps keep the writer next to the form it writes, and encoding/json sorts
// their keys.
type m = map[string]any

// SARIF writes SARIF 2.1.0. Suppressed findings are left out unless they are to
// be shown, since code hosts show them all the same. The column kind is stated,
// since a reader that assumes another one marks the wrong characters on lines with
// non-ASCII text.
func (r *Report) SARIF(w io.Writer) error {
	rules, index := []m{}, map[string]int{}
	for i, x := range r.Rules {
		index[x.ID] = i
		rules = append(rules, x.sarif())
	}
	s := sarif{columns{source: r.Source}}
	results := []m{}
	for _, f := range r.shown() {
		result := s.result(&f)
		if i, ok := index[f.ID]; ok {
			result["ruleIndex"] = i
		}
		results = append(results, result)
	}
	kind := "unicodeCodePoints"
	if r.Source != nil {
		kind = "utf16CodeUnits"
	}
	driver := m{"name": "forbear", "semanticVersion": r.Version, "informationUri": "https://github.com/forbear-go/forbear", "rules": rules}
	if len(r.Problems) > 0 {
		driver["notifications"] = problemDescriptors()
	}
	run := m{
		"tool":              m{"driver": driver},
		"automationDetails": m{"id": "forbear/" + r.Tool + after("/", r.About)},
		"columnKind":        kind,
		"invocations":       []m{s.invocation(r)},
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

// sarif describes the rule for the reader of an alert, who sees nothing else of
// forbear. GitHub shows the markdown and most other tools the text, so both hold the
// fix. Precision is high for all rules: the analyzers are silent when unsure.
func (x *Rule) sarif() m {
	text, markdown := x.Why, x.Why
	if x.Fix != "" {
		text += "\n\n" + x.Fix
		markdown += "\n\n**Fix:** " + x.Fix
	}
	if x.Bad != "" {
		markdown += "\n\nReported:\n\n```go\n" + x.Bad + "\n```\n\nInstead:\n\n```go\n" + x.Good + "\n```\n"
	}
	rule := m{
		"id": x.ID, "name": pascal(x.Name),
		"shortDescription":     m{"text": x.Summary},
		"fullDescription":      m{"text": x.Summary + around(" (", x.Standard, ")")},
		"help":                 m{"text": text, "markdown": markdown},
		"defaultConfiguration": m{"level": x.Severity.String()},
		"properties": m{
			"standard": x.Standard, "tags": []string{"retry", "reliability"}, "precision": "high", "problem.severity": problem(x.Severity),
		},
	}
	if x.URL != "" {
		rule["helpUri"] = x.URL
	}
	return rule
}

// problem is a severity in the words of code hosts.
func problem(s Severity) string {
	if s == Note {
		return "recommendation"
	}
	return s.String()
}

// around puts s between two texts, or returns nothing when s is empty: a message
// must not show empty brackets.
func around(before, s, behind string) string {
	if s == "" {
		return ""
	}
	return before + s + behind
}

// pascal turns "retry-budget-missing" into "RetryBudgetMissing", as SARIF wants the
// names of rules (section 3.49.7).
func pascal(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// sarif writes the findings of one report. It exists for the columns, which read
// each source file once.
type sarif struct{ columns columns }

// result writes one finding. Message and hint share one text, since viewers show no
// second one. A finding that only the baseline suppresses is "unchanged" and has no
// suppression: SARIF has a state for exactly that, and a suppression would say that a person accepted it.
func (s *sarif) result(f *Finding) m {
	text := f.Message
	switch {
	case f.Hint != "" && f.URL != "": // the rule has the page
		text += "; fix: " + f.Hint
	case f.Hint != "":
		text += ". " + f.Hint
	}
	location := m{"physicalLocation": s.physical(f.place())}
	if f.Package != "" {
		location["logicalLocations"] = []m{{"fullyQualifiedName": f.Package + after(".", f.Function), "kind": "function"}}
	}
	result := m{
		"ruleId": f.ID, "level": f.Severity.String(), "message": m{"text": Line(text)},
		"locations":           []m{location},
		"partialFingerprints": m{fingerprintKey: f.Fingerprint()},
	}
	properties := m{}
	if f.Confidence != "" {
		properties["confidence"] = f.Confidence
	}
	if f.Degree != 0 {
		properties["degree"] = f.Degree
	}
	if len(f.Covers) > 0 {
		properties["covers"] = f.Covers
	}
	if len(properties) > 0 {
		result["properties"] = properties
	}
	if f.Baseline != "" {
		result["baselineState"] = f.Baseline
	}
	if f.Suppressed != "" && f.Baseline != "unchanged" {
		kind := "external"
		if f.InSource {
			kind = "inSource"
		}
		result["suppressions"] = []m{{"kind": kind, "status": "accepted", "justification": f.Suppressed}}
	}
	related := []m{}
	for i, p := range f.Related {
		related = append(related, m{"id": i + 1, "physicalLocation": s.physical(p), "message": m{"text": Line(p.Message)}})
	}
	if len(related) > 0 {
		result["relatedLocations"] = related
	}
	fixes := []m{}
	for _, x := range f.Fixes {
		fixes = append(fixes, s.fix(x))
	}
	if len(fixes) > 0 {
		result["fixes"] = fixes
	}
	return result
}

// physical writes a place. A finding about a whole file has no region: SARIF counts
// lines from 1, and line 0 breaks its schema.
func (s *sarif) physical(p Place) m {
	where := m{"artifactLocation": artifact(p.File)}
	if p.Line > 0 {
		where["region"] = s.region(p)
	}
	return where
}

// region writes the lines and columns. The end is exclusive in SARIF as in our own
// places, so it passes through unchanged.
func (s *sarif) region(p Place) m {
	region := m{"startLine": p.Line, "startColumn": s.columns.of(p.File, p.Line, p.Column)}
	if p.EndLine > 0 {
		region["endLine"], region["endColumn"] = p.EndLine, s.columns.of(p.File, p.EndLine, p.EndColumn)
	}
	return region
}

// artifact is a file's location: a URI, relative to the root where it can be.
// Absolute paths keep their file URI: they lie outside the root, and a relative form
// would point nowhere.
func artifact(file string) m {
	slashed := filepath.ToSlash(file)
	if filepath.IsAbs(file) {
		return m{"uri": FileURI(file)}
	}
	return m{"uri": (&url.URL{Path: slashed}).String(), "uriBaseId": "%SRCROOT%"}
}

// FileURI is the URI of a file with an absolute name. One with the letter of a drive
// gets a slash in front of it, where the name of a host would stand otherwise.
func FileURI(name string) string {
	path := filepath.ToSlash(name)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// fix groups the edits by file, in the order of their first ones. Two runs over the
// same code must write the same bytes, which a map's order would not give.
func (s *sarif) fix(x Fix) m {
	var files []string
	replacements := map[string][]m{}
	for _, e := range x.Edits {
		if replacements[e.File] == nil {
			files = append(files, e.File)
		}
		replacements[e.File] = append(replacements[e.File], m{
			"deletedRegion": s.region(e.Place), "insertedContent": m{"text": e.NewText},
		})
	}
	changes := []m{}
	for _, name := range files {
		changes = append(changes, m{"artifactLocation": artifact(name), "replacements": replacements[name]})
	}
	return m{"description": m{"text": x.Message}, "artifactChanges": changes}
}

// columns turns columns that count bytes into such that count UTF-16 units. It
// keeps the lines of the last file. Findings come sorted by file, so one file at a
// time is enough memory.
type columns struct {
	source func(string) ([]byte, error)
	file   string
	lines  []string
}

// of converts one column. When the source cannot be read or the place is outside it,
// the column stays as it is: a mark that is a little off beats a report that fails.
func (c *columns) of(file string, line, col int) int {
	col = max(col, 1)
	if c.source == nil {
		return col
	}
	if file != c.file {
		src, err := c.source(file)
		if err != nil {
			return col
		}
		c.file, c.lines = file, strings.Split(string(src), "\n")
	}
	if line < 1 || line > len(c.lines) || col-1 > len(c.lines[line-1]) {
		return col
	}
	return len(utf16.Encode([]rune(c.lines[line-1][:col-1]))) + 1
}
