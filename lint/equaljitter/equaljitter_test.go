package equaljitter_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/equaljitter"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), equaljitter.Analyzer, "a")
}
