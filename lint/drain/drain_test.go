//forbear:plain rules have no goroutines; package lint runs them at once
package drain_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/drain"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), drain.Analyzer, "a")
}
