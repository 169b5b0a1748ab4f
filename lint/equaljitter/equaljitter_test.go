//forbear:plain rules have no goroutines; package lint runs them at once
package equaljitter_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/internal/config"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), equaljitter.Analyzer, "a")
}

// TestDeferred: what is kept for a later attempt is a warning, so that go vet
// shows it on demand only.
func TestDeferred(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	t.Cleanup(func() { config.Set(nil) })
	analysistest.Run(t, analysistest.TestData(), equaljitter.Analyzer, "deferred")
}
