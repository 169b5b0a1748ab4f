package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
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

// ParseSettings reads settings; name stands for them in faults, which come all at
// once. Findings about certificates and secrets keep their severity, and so do
// those about waivers and comments. What was not judged (FC001) is never off.
func ParseSettings(name string, data []byte) (*Settings, error) {
	roots, err := tree.YAML(name, data)
	if err != nil {
		return nil, err
	}
	p := &settingsParser{}
	s := &Settings{}
	if len(roots) > 1 {
		p.fault(roots[1], "a second document: settings are one")
	}
	for _, root := range roots[:min(len(roots), 1)] {
		if at, twice := root.Repeated(); twice {
			p.faults = append(p.faults, fmt.Errorf("%s: a key stands twice here", at))
		}
		p.keys(root, map[string]func(*tree.Node){
			"severity": func(n *tree.Node) { s.severity = p.levels(n) },
			"paths": func(n *tree.Node) {
				if n.Kind != tree.List {
					p.fault(n, "paths is no list: want one of maps with files and severity")
				}
				for _, item := range n.List() {
					s.paths = append(s.paths, p.path(item))
				}
			},
			"comments": func(n *tree.Node) {
				if s.NoComments = n.Text() == "off"; !s.NoComments && n.Text() != "on" {
					p.fault(n, "comments is %q: want on or off", n.Text())
				}
			},
		})
	}
	return s, errors.Join(p.faults...)
}

type settingsParser struct{ faults []error }

func (p *settingsParser) fault(n *tree.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s: %s", n.At, fmt.Sprintf(format, args...)))
}

// keys reads the keys of a map, each with its reader.
func (p *settingsParser) keys(n *tree.Node, known map[string]func(*tree.Node)) {
	if !n.Map() {
		p.fault(n, "want a map")
		return
	}
	for _, pair := range n.Pairs {
		if read, ok := known[pair.Key]; ok {
			read(pair.Value)
			continue
		}
		var names []string
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		p.faults = append(p.faults, fmt.Errorf("%s: unknown key %q%s", pair.At, pair.Key, nearest.Hint(pair.Key, names, "")))
	}
}

func (p *settingsParser) path(n *tree.Node) (s pathSettings) {
	p.keys(n, map[string]func(*tree.Node){
		"severity": func(n *tree.Node) { s.severity = p.levels(n) },
		"files": func(n *tree.Node) {
			for _, item := range n.List() {
				if !doublestar.ValidatePattern(item.Text()) {
					p.fault(item, "%q is no pattern", item.Text())
				}
				s.files = append(s.files, item.Text())
			}
		},
	})
	if len(s.files) == 0 {
		p.fault(n, "files is missing: want patterns such as legacy/**")
	}
	return s
}

func (p *settingsParser) levels(n *tree.Node) levels {
	found := levels{}
	if !n.Map() {
		p.fault(n, "severity is no map, such as {FC208: error}")
	}
	for _, pair := range n.Pairs {
		rule, ok := RuleOf(pair.Key)
		level, err := report.ParseSeverity(pair.Value.Text())
		switch {
		case !ok:
			p.fault(pair.Value, "%s is no finding of check: see forbear rules list", pair.Key)
		case !ignorable(rule), pair.Key == "FC001" && pair.Value.Text() == "off":
			p.fault(pair.Value, "%s keeps its severity", pair.Key)
		case pair.Value.Text() == "off":
			found[pair.Key] = nil
		case err != nil:
			p.fault(pair.Value, "%s is %q: want error, warning, note or off", pair.Key, pair.Value.Text())
		default:
			found[pair.Key] = &level
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
	r.findings = slices.DeleteFunc(r.findings, func(f report.Finding) bool {
		level, ok := r.Settings.level(&f)
		return ok && level == nil
	})
	r.off = before - len(r.findings)
	for i := range r.findings {
		if level, ok := r.Settings.level(&r.findings[i]); ok {
			r.findings[i].Severity = *level
		}
	}
}
