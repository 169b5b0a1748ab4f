package nonretryable_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/nonretryable"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), nonretryable.Analyzer, "a", "rpc", "place", "libs")
}
