//forbear:plain rules have no goroutines; package lint runs them at once
package freshkey_test

import (
	"testing"

	"github.com/forbear-go/forbear/lint/freshkey"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, freshkey.Analyzer, "a")
}
