//forbear:plain rules have no goroutines; package lint runs them at once
package totalduration_test

import (
	"os"
	"testing"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/totalduration"
)

func TestMain(m *testing.M) {
	config.Set(&config.Settings{Confidence: "low"})
	os.Exit(m.Run())
}

func Test(t *testing.T) {
	ruletest.Run(t, totalduration.Analyzer, "a")
}
