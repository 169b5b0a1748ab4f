//forbear:plain rules have no goroutines; package lint runs them at once
package retryafter_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/internal/ruletest"
	"github.com/forbear-go/forbear/lint/retryafter"
)

func Test(t *testing.T) {
	ruletest.Run(t, retryafter.Analyzer, "a")
}
