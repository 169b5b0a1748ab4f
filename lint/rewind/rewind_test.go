//forbear:plain rules have no goroutines; package lint runs them at once
package rewind_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/rewind"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), rewind.Analyzer, "a")
}
