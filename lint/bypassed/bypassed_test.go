//forbear:plain rules have no goroutines; package lint runs them at once
package bypassed_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/bypassed"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, bypassed.Analyzer, "a")
}
