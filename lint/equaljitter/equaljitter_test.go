//forbear:plain rules have no goroutines; package lint runs them at once
package equaljitter_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, equaljitter.Analyzer, "a")
}
