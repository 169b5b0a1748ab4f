package check

import (
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// SettingsName is the name under which settings are found.
const SettingsName = ".forbear-check.yaml"

// Settings say how grave findings are in a repository, which a run cannot know:
//
//	severity: {FC208: error, FC702: "off"}
//	paths:
//	- files: ["legacy/**"]
//	  severity: {FC210: note}
//	comments: "off"        # forbear:ignore lifts nothing
//
// The zero value leaves all as it is.
type Settings struct {
	severity levels
	paths    []pathSettings
	// NoComments says that comments lift nothing.
	NoComments bool
}

// levels holds severities by the ids of findings; nil stands for off.
type levels map[string]*report.Severity

// pathSettings are those of some files. Later ones count more.
type pathSettings struct {
	files    []string
	severity levels
}

// maxSettings bounds a file of settings, in bytes.
const maxSettings = 1 << 20

// ParseSettings reads settings; name stands for them in faults, which come all at
// once. Findings about certificates and secrets keep their severity, and so do
// those about waivers and comments. What was not judged (FC001) is never off.
func ParseSettings(name string, data []byte) (*Settings, error) {
	r, s := &settingsReader{Reader: strict.Reader{Name: name, Blank: true}}, &Settings{}
	if root := r.Document(data, maxSettings); root != nil {
		r.Keys(root, "the settings", strict.Fields{
			"severity": func(n *yaml.Node) { s.severity = r.levels(n) },
			"paths": func(n *yaml.Node) {
				for _, item := range r.Items(n, "paths") {
					s.paths = append(s.paths, r.path(item))
				}
			},
			"comments": func(n *yaml.Node) {
				i, _ := r.Choice(n, "comments", "on", "off")
				s.NoComments = i == 1
			},
		})
	}
	return s, r.Err()
}

// settingsReader reads one file of settings.
type settingsReader struct{ strict.Reader }

// path reads the settings of some files.
func (r *settingsReader) path(n *yaml.Node) (s pathSettings) {
	r.Keys(n, "an entry of paths", strict.Fields{
		"severity": func(n *yaml.Node) { s.severity = r.levels(n) },
		"files": func(n *yaml.Node) {
			for _, item := range r.Items(n, "files") {
				if !doublestar.ValidatePattern(item.Value) {
					r.Fault(item, "%s is not a pattern", strict.Quote(item.Value))
				}
				s.files = append(s.files, item.Value)
			}
		},
	})
	if len(s.files) == 0 {
		r.Fault(n, "files is missing: write patterns such as legacy/**")
	}
	return s
}

// levels reads severities by the ids of findings.
func (r *settingsReader) levels(n *yaml.Node) levels {
	found := levels{}
	for key, value := range r.Entries(n, "severity") {
		id := key.Value
		rule, known := RuleOf(id)
		switch {
		case !known:
			r.Fault(value, "%s is not a finding of check: see forbear rules list", id)
			continue
		case !ignorable(rule), id == notJudged.ID && value.Value == "off":
			r.Fault(value, "the severity of %s cannot be changed", id)
			continue
		}
		words := []string{"error", "warning", "note", "off"}
		switch i, ok := r.Choice(value, id, words...); {
		case !ok:
		case words[i] == "off":
			found[id] = nil
		default:
			level, _ := report.ParseSeverity(words[i]) // its own word
			found[id] = &level
		}
	}
	return found
}

// level returns what the settings say of a finding; ok is false when they say
// nothing.
func (s *Settings) level(f *report.Finding) (level *report.Severity, ok bool) {
	level, ok = s.severity[f.ID]
	for _, p := range s.paths {
		in := slices.ContainsFunc(p.files, func(glob string) bool {
			match, _ := doublestar.Match(glob, filepath.ToSlash(filepath.Clean(f.File)))
			return match
		})
		if l, said := p.severity[f.ID]; in && said {
			level, ok = l, true
		}
	}
	return level, ok
}

// settings gives the findings the severities of the settings. What is off is left
// out.
func (r *run) settings() {
	if r.Settings == nil {
		return
	}
	before := len(r.findings)
	r.findings = slices.DeleteFunc(r.findings, func(f finding) bool {
		level, ok := r.Settings.level(&f.Finding)
		return ok && level == nil
	})
	r.off = before - len(r.findings)
	for i := range r.findings {
		if level, ok := r.Settings.level(&r.findings[i].Finding); ok {
			r.findings[i].Severity = *level
		}
	}
}
