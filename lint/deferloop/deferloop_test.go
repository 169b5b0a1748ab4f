//forbear:plain rules have no goroutines; package lint runs them at once
package deferloop_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/deferloop"
	"github.com/forbear-go/forbear/lint/internal/config"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), deferloop.Analyzer, "a")
}

// TestTurns shows findings of medium confidence: a loop that goes on after a
// success is a retry with no more than that.
func TestTurns(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	analysistest.Run(t, analysistest.TestData(), deferloop.Analyzer, "turns")
}
