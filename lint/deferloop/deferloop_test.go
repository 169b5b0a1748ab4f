package deferloop_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/deferloop"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), deferloop.Analyzer, "a")
}
