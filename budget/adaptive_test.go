package budget_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/budget"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAdaptiveRefusesRetriesByChance(t *testing.T) {
	b := budget.NewAdaptive(2, 2*time.Minute)
	for range 99 {
		b.Request(epoch)
	}
	for range 25 {
		b.Succeeded(epoch, 0, 0)
	}
	b.SetRand(func() float64 { return 0.48 }) // (99 - 50) / 100 is 0.49
	if b.Spend(epoch, 0) {
		t.Error("a draw below the probability was allowed")
	}
	b.Refund(epoch, 0)
	b.SetRand(func() float64 { return 0.50 })
	if !b.Spend(epoch, 0) {
		t.Error("a draw above the probability was refused")
	}
	if got := b.Level(epoch.Add(time.Hour)).Utilization(); got != 0 {
		t.Errorf("idle: utilization %v, want 0", got)
	}
}
