package fixedinterval_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/fixedinterval"
)

// Test runs the retries, the near misses and the libraries in one load, which
// type-checks the standard library once.
func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), fixedinterval.Analyzer, "a", "near", "libs")
}
