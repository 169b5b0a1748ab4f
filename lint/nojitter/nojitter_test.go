package nojitter_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/nojitter"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), nojitter.Analyzer, "a")
}
