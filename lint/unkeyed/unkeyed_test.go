package unkeyed_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/unkeyed"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), unkeyed.Analyzer, "a", "libs", "single", "shop", "careful", "under", "over", "named", "anew")
}
