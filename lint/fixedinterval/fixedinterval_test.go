package fixedinterval_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/fixedinterval"
)

func TestRetries(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), fixedinterval.Analyzer, "a")
}

func TestNearMisses(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), fixedinterval.Analyzer, "near")
}

func TestLibraries(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), fixedinterval.Analyzer, "libs")
}
