//forbear:plain rules have no goroutines; package lint runs them at once
package attempts_test

import (
	"os"
	"testing"

	"github.com/forbear-go/forbear/lint/attempts"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func TestMain(m *testing.M) {
	config.Set(&config.Settings{Confidence: "medium"})
	os.Exit(m.Run())
}

func Test(t *testing.T) {
	ruletest.Run(t, attempts.Analyzer, "a")
}
