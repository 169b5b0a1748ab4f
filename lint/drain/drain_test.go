//forbear:plain rules have no goroutines; package lint runs them at once
package drain_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/drain"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, drain.Analyzer, "a")
}
