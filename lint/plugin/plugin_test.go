//forbear:plain it hands rules to golangci-lint and starts nothing
package plugin

import (
	"os"
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/config"
)

func TestRegistered(t *testing.T) {
	if _, err := register.GetPlugin("forbear"); err != nil {
		t.Fatal(err)
	}
}

// TestSettings hands settings over as golangci-lint does: as what its YAML
// reader made of them.
func TestSettings(t *testing.T) {
	all := len(lint.Analyzers()) + 1 // the one of directives
	tests := []struct {
		name      string
		settings  any
		analyzers int
		fault     string
	}{
		{"none", nil, all, ""},
		{"empty", map[string]any{}, all, ""},
		{"one disabled", map[string]any{"disable": []any{"FB1020"}}, all - 1, ""},
		{"confidence", map[string]any{"confidence": "medium"}, all, ""},
		{"limits", map[string]any{"max_attempts": 6, "retryable": []any{404}, "dependencies": []any{
			map[string]any{"name": "pay", "code": []any{"internal/pay/..."}, "max_attempts": 3},
		}}, all, ""},
		{"unknown rule", map[string]any{"disable": []any{"FB9999"}}, 0, `rule "FB9999" is unknown`},
		{"unknown confidence", map[string]any{"confidence": "certain"}, 0, `confidence "certain"`},
		{"unknown key", map[string]any{"confident": "high"}, 0, "did you mean confidence?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.settings)
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("got %v, want %q", err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			list, err := p.BuildAnalyzers()
			if err != nil || len(list) != tt.analyzers || p.GetLoadMode() != register.LoadModeTypesInfo {
				t.Errorf("got %d analyzers, mode %s, error %v; want %d, typesinfo", len(list), p.GetLoadMode(), err, tt.analyzers)
			}
		})
	}
}

// TestSettingsOfFile: the file of settings counts where golangci-lint's own
// configuration has none, or an empty mapping.
func TestSettingsOfFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".forbear-lint.yaml", []byte("disable: [FB1020]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, conf := range []any{nil, map[string]any{}} {
		p, err := New(conf)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := p.BuildAnalyzers(); err != nil || len(list) != len(lint.Analyzers()) {
			t.Errorf("%#v: got %d analyzers, %v; want one less than all", conf, len(list), err)
		}
	}
}

// TestSettingsInForce: what the analyzers read is what was configured.
func TestSettingsInForce(t *testing.T) {
	p, err := New(map[string]any{"max_attempts": 6, "retryable": []any{404, "NOT_FOUND"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.BuildAnalyzers(); err != nil {
		t.Fatal(err)
	}
	l, _ := config.Current().For(config.Place{Package: "p"})
	if l.MaxAttempts != 6 || !l.MayRetry("404", false) || !l.MayRetry("NOT_FOUND", false) || l.MayRetry("403", false) {
		t.Errorf("got %+v, want six attempts, 404 and NOT_FOUND", l)
	}
}
