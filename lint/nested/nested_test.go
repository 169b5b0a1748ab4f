//forbear:plain rules have no goroutines; package lint runs them at once
package nested_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/nested"
)

func Test(t *testing.T) {
	ruletest.Run(t, nested.Analyzer, "a")
}
