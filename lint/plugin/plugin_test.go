package plugin

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/forbear-go/forbear/lint"
)

func TestRegistered(t *testing.T) {
	if _, err := register.GetPlugin("forbear"); err != nil {
		t.Fatal(err)
	}
}

func TestSettings(t *testing.T) {
	tests := []struct {
		name      string
		settings  any
		analyzers int
		ok        bool
	}{
		{"none", nil, len(lint.Analyzers()), true},
		{"one disabled", map[string]any{"disable": []string{"FB1020"}}, len(lint.Analyzers()) - 1, true},
		{"confidence", map[string]any{"confidence": "medium"}, len(lint.Analyzers()), true},
		{"unknown rule", map[string]any{"disable": []string{"FB9999"}}, 0, false},
		{"unknown confidence", map[string]any{"confidence": "certain"}, 0, false},
		{"unknown key", map[string]any{"confident": "high"}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.settings)
			if (err == nil) != tt.ok {
				t.Fatalf("got error %v, want ok %v", err, tt.ok)
			}
			if !tt.ok {
				return
			}
			list, err := p.BuildAnalyzers()
			if err != nil || len(list) != tt.analyzers || p.GetLoadMode() != register.LoadModeTypesInfo {
				t.Errorf("got %d analyzers, mode %s, error %v; want %d, typesinfo", len(list), p.GetLoadMode(), err, tt.analyzers)
			}
		})
	}
}
