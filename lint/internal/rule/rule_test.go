//forbear:plain rules have no goroutines; package lint runs them at once
package rule

import (
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/retry"
)

// TestTurnOfPanic: a rule that panics hands its turn on, since golangci-lint goes
// on with the others.
func TestTurnOfPanic(t *testing.T) {
	shared := &retry.Result{}
	a := New(&Doc{ID: "FB9999"}, func(*Pass) { panic("odd code") })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the rule does not panic")
			}
		}()
		_, _ = a.Run(&analysis.Pass{ResultOf: map[*analysis.Analyzer]any{retry.Analyzer: shared}})
	}()
	if !shared.Turn.TryLock() {
		t.Error("the other rules wait for ever")
	}
}
