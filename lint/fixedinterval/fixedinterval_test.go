//forbear:plain rules have no goroutines; package lint runs them at once
package fixedinterval_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

// Test runs the retries, the near misses and the libraries in one load, which
// type-checks the standard library once.
func Test(t *testing.T) {
	ruletest.Run(t, fixedinterval.Analyzer, "a", "near", "hidden", "started", "libs", "steps", "own")
}

// TestTurns shows findings of medium confidence: a loop that goes on after a
// success is a retry with no more than that.
func TestTurns(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	ruletest.Run(t, fixedinterval.Analyzer, "turns", "restarts", "local")
}
