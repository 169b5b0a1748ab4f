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
//	        settings: {confidence: high, max_attempts: 6}
//
// The settings are those of forbear lint: see the package settings. Findings
// are suppressed by //nolint:forbear // reason, or by forbear's own directive.
//
// Experimental: what this package exports may change in any version.
package plugin

import (
	"encoding/json"
	"fmt"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/settings"
)

func init() { register.Plugin("forbear", New) }

// New reads the settings and returns the plugin. Unknown keys and bad values
// are errors. Without any settings the defaults hold, or those of the file
// that settings.FileName names, in the working directory or above.
func New(conf any) (register.LinterPlugin, error) {
	s, err := read(conf)
	if err != nil {
		return nil, fmt.Errorf("forbear: %w", err)
	}
	return &linter{s}, nil
}

// read takes the settings from golangci-lint's own configuration when it holds
// any, and from the file of settings otherwise.
func read(conf any) (*settings.Settings, error) {
	text, err := json.Marshal(conf) // which is YAML too
	if err != nil {
		return nil, err
	}
	if s := string(text); s == "null" || s == "{}" {
		return settings.Load("", ".")
	}
	return settings.Parse("settings", text)
}

// linter is the plugin with its settings.
type linter struct{ settings *settings.Settings }

// BuildAnalyzers puts the settings in force and returns the analyzers.
func (l *linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	if err := l.settings.Apply(); err != nil {
		return nil, fmt.Errorf("forbear: %w", err)
	}
	var list []*analysis.Analyzer
	for i, a := range lint.Analyzers() {
		if !l.settings.Disabled(lint.RuleOf(i)) {
			list = append(list, a)
		}
	}
	return append(list, lint.Directives), nil
}

// GetLoadMode asks for type information.
func (l *linter) GetLoadMode() string { return register.LoadModeTypesInfo }
