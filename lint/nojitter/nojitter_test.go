//forbear:plain rules have no goroutines; package lint runs them at once
package nojitter_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/nojitter"
)

func Test(t *testing.T) {
	ruletest.Run(t, nojitter.Analyzer, "a", "hidden", "recursion", "seams", "server", "libs", "github.com/failsafe-go/failsafe-go/retrypolicy")
}

// TestTurns shows findings of medium confidence: a loop that goes on after a
// success is a retry with no more than that.
func TestTurns(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	ruletest.Run(t, nojitter.Analyzer, "turns")
}
