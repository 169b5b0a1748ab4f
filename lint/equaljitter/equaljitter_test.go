//forbear:plain rules have no goroutines; package lint runs them at once
package equaljitter_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, equaljitter.Analyzer, "a")
}

// TestDeferred: what is kept for a later attempt is a warning, so that go vet
// shows it on demand only.
func TestDeferred(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	t.Cleanup(func() { config.Set(nil) })
	ruletest.Run(t, equaljitter.Analyzer, "deferred")
}
