//forbear:plain rules have no goroutines; package lint runs them at once
package attempts_test

import (
	"os"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/forbear-go/forbear/lint/attempts"
	"github.com/forbear-go/forbear/lint/internal/config"
)

func TestMain(m *testing.M) {
	config.Set(&config.Settings{Confidence: "medium"})
	os.Exit(m.Run())
}

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), attempts.Analyzer, "a")
}
