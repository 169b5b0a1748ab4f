package equaljitter_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), equaljitter.Analyzer, "a")
}

// TestDeferred: what is kept for a later attempt is a warning, so that go vet
// shows it on demand only.
func TestDeferred(t *testing.T) {
	rule.SetMinimum(rule.Medium)
	t.Cleanup(func() { rule.SetMinimum(rule.High) })
	analysistest.Run(t, analysistest.TestData(), equaljitter.Analyzer, "deferred")
}
