// Package plugin makes forbear's analyzers a module plugin of golangci-lint
// v2. In .custom-gcl.yml:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/forbear-go/forbear/lint
//	    import: github.com/forbear-go/forbear/lint/plugin
//	    version: v0.1.0
//
// and in .golangci.yml:
//
//	linters:
//	  enable: [forbear]
//	  settings:
//	    custom:
//	      forbear:
//	        type: module
//	        settings: {confidence: high}
//
// Findings are suppressed by //nolint:forbear // reason.
package plugin

import (
	"fmt"
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

func init() { register.Plugin("forbear", New) }

// Settings are the plugin's settings. The zero value reports findings of high
// confidence, by all rules.
type Settings struct {
	// Confidence is the least that is reported: high (default), medium or low.
	Confidence string `json:"confidence"`
	// Disable lists rules that are not to run.
	Disable []string `json:"disable"`
}

// New reads the settings and returns the plugin. Unknown keys, rules and
// confidences are errors.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](conf)
	if err != nil {
		return nil, fmt.Errorf("forbear: %w", err)
	}
	p := &linter{disable: s.Disable, confidence: rule.High}
	if s.Confidence != "" {
		if p.confidence, err = rule.ParseConfidence(s.Confidence); err != nil {
			return nil, fmt.Errorf("forbear: %w", err)
		}
	}
	for _, id := range s.Disable {
		if _, ok := lint.Explain(id); !ok {
			return nil, fmt.Errorf("forbear: disable: rule %q is unknown", id)
		}
	}
	return p, nil
}

type linter struct {
	disable    []string
	confidence rule.Confidence
}

// BuildAnalyzers returns the analyzers that are not disabled.
func (l *linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	rule.SetMinimum(l.confidence)
	var list []*analysis.Analyzer
	for i, a := range lint.Analyzers() {
		if !slices.Contains(l.disable, lint.RuleOf(i)) {
			list = append(list, a)
		}
	}
	return list, nil
}

// GetLoadMode asks for type information.
func (l *linter) GetLoadMode() string { return register.LoadModeTypesInfo }
