//forbear:plain rules have no goroutines; package lint runs them at once
package unkeyed_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/unkeyed"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), unkeyed.Analyzer, "a", "libs", "single", "shop", "careful", "under", "over", "named", "anew", "policed", "verbs")
}

// TestMedium shows findings of medium confidence.
func TestMedium(t *testing.T) {
	config.Set(&config.Settings{Confidence: "medium"})
	defer config.Set(nil)
	analysistest.Run(t, analysistest.TestData(), unkeyed.Analyzer, "asked")
}
