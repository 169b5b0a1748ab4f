//forbear:plain rules have no goroutines; package lint runs them at once
package unkeyed_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/unkeyed"
)

func Test(t *testing.T) {
	ruletest.Run(t, unkeyed.Analyzer, "a", "libs", "single", "shop", "careful", "under", "policed", "verbs")
}

// TestMedium shows findings of medium confidence.
func TestMedium(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	ruletest.Run(t, unkeyed.Analyzer, "asked")
}
