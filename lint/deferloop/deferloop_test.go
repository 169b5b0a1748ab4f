//forbear:plain rules have no goroutines; package lint runs them at once
package deferloop_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/deferloop"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, deferloop.Analyzer, "a")
}

// TestTurns shows findings of medium confidence: a loop that goes on after a
// success is a retry with no more than that.
func TestTurns(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	ruletest.Run(t, deferloop.Analyzer, "turns")
}
