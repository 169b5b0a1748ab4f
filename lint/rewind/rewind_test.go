//forbear:plain rules have no goroutines; package lint runs them at once
package rewind_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/rewind"
)

func Test(t *testing.T) {
	ruletest.Run(t, rewind.Analyzer, "a")
}
