package driver

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"unicode/utf16"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// fingerprintKey names our fingerprint. GitHub's own key,
// primaryLocationLineHash, is left to GitHub, which computes it when absent.
const fingerprintKey = "forbear/v1"

type m = map[string]any

// writeSARIF writes SARIF 2.1.0.
func writeSARIF(w io.Writer, r *report) error {
	index := map[string]int{}
	var rules []m
	for i, d := range lint.Rules() {
		index[d.ID] = i
		rules = append(rules, sarifRule(d))
	}
	results := []m{}
	cols := columns{}
	for _, f := range r.findings {
		results = append(results, sarifResult(f, r, index, cols))
	}
	root := "file:///"
	if wd, err := os.Getwd(); err == nil {
		root = "file://" + filepath.ToSlash(wd) + "/"
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(m{
		"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		"version": "2.1.0",
		"runs": []m{{
			"tool": m{"driver": m{
				"name": "forbear", "semanticVersion": lint.Version, "informationUri": "https://github.com/forbear-go/forbear", "rules": rules,
			}},
			"automationDetails":  m{"id": "forbear/lint/" + r.module},
			"originalUriBaseIds": m{"%SRCROOT%": m{"uri": root}},
			"columnKind":         "utf16CodeUnits",
			"invocations":        []m{{"executionSuccessful": true}},
			"results":            results,
		}},
	})
}

func sarifRule(d *lint.Doc) m {
	md := d.Text
	if d.Bad != "" {
		md += "\n\nReported:\n\n```go\n" + d.Bad + "\n```\n\nInstead:\n\n```go\n" + d.Good + "\n```\n"
	}
	return m{
		"id": d.ID, "name": d.Name,
		"shortDescription":     m{"text": d.Title},
		"fullDescription":      m{"text": d.Title + " (" + d.Standard + ")"},
		"help":                 m{"text": d.Text, "markdown": md},
		"helpUri":              lint.HelpURL(d.ID),
		"defaultConfiguration": m{"level": "error"},
		"properties":           m{"tags": []string{"reliability", "retry"}, "precision": "high", "problem.severity": "error", "standard": d.Standard},
	}
}

func sarifResult(f *Finding, r *report, index map[string]int, cols columns) m {
	level := "warning"
	if f.confidence >= r.failOn {
		level = "error"
	} else if f.confidence == rule.Low {
		level = "note"
	}
	res := m{
		"ruleId": f.Rule, "ruleIndex": index[f.Rule], "level": level,
		"message":             m{"text": f.Message},
		"locations":           []m{{"physicalLocation": cols.physical(f.Place), "logicalLocations": []m{{"fullyQualifiedName": f.Package + "." + f.Function, "kind": "function"}}}},
		"partialFingerprints": m{fingerprintKey: f.Fingerprint},
		"properties":          m{"confidence": f.Confidence},
	}
	var related []m
	for i, p := range f.Related {
		related = append(related, m{"id": i + 1, "physicalLocation": cols.physical(p), "message": m{"text": p.Message}})
	}
	if related != nil {
		res["relatedLocations"] = related
	}
	if f.Baseline != "" {
		res["baselineState"] = f.Baseline
	}
	if f.Suppressed != "" {
		res["suppressions"] = []m{{"kind": "inSource", "status": "accepted", "justification": f.Suppressed}}
	}
	var fixes []m
	for _, x := range f.Fixes {
		fixes = append(fixes, sarifFix(x))
	}
	if fixes != nil {
		res["fixes"] = fixes
	}
	return res
}

func sarifFix(x Fix) m {
	byFile := map[string][]m{}
	var files []string
	for _, e := range x.Edits {
		if byFile[e.File] == nil {
			files = append(files, e.File)
		}
		byFile[e.File] = append(byFile[e.File], m{
			"deletedRegion":   m{"byteOffset": e.Start, "byteLength": e.End - e.Start},
			"insertedContent": m{"text": e.NewText},
		})
	}
	var changes []m
	for _, name := range files {
		changes = append(changes, m{"artifactLocation": m{"uri": name, "uriBaseId": "%SRCROOT%"}, "replacements": byFile[name]})
	}
	return m{"description": m{"text": x.Message}, "artifactChanges": changes}
}

// columns turns byte columns into UTF-16 ones; it remembers the files' lines.
type columns map[string][][]byte

func (c columns) physical(p Place) m {
	region := m{"startLine": p.Line, "startColumn": c.utf16(p.abs, p.Line, p.Column)}
	if p.EndLine > 0 {
		region["endLine"], region["endColumn"] = p.EndLine, c.utf16(p.abs, p.EndLine, p.EndColumn)
	}
	return m{"artifactLocation": m{"uri": p.File, "uriBaseId": "%SRCROOT%"}, "region": region}
}

func (c columns) utf16(file string, line, col int) int {
	lines, ok := c[file]
	if !ok {
		if src, err := os.ReadFile(file); err == nil {
			lines = splitLines(src)
		}
		c[file] = lines
	}
	if line > len(lines) || col < 1 || col-1 > len(lines[line-1]) {
		return max(col, 1)
	}
	return len(utf16.Encode([]rune(string(lines[line-1][:col-1])))) + 1
}

func splitLines(src []byte) [][]byte {
	var lines [][]byte
	start := 0
	for i, b := range src {
		if b == '\n' {
			lines = append(lines, src[start:i])
			start = i + 1
		}
	}
	return append(lines, src[start:])
}
