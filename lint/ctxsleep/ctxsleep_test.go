//forbear:plain rules have no goroutines; package lint runs them at once
package ctxsleep_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/ctxsleep"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, ctxsleep.Analyzer, "a")
}
