//forbear:plain rules have no goroutines; package lint runs them at once
package ctxsleep_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/ctxsleep"
)

func Test(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), ctxsleep.Analyzer, "a")
}
