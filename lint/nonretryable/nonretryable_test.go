//forbear:plain rules have no goroutines; package lint runs them at once
package nonretryable_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/nonretryable"
)

func Test(t *testing.T) {
	ruletest.Run(t, nonretryable.Analyzer, "a", "deep", "rpc", "place", "libs", "signals", "tables", "chosen")
}

// TestMedium shows findings of medium confidence too.
func TestMedium(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	ruletest.Run(t, nonretryable.Analyzer, "medium", "restarts")
}
