package storetest_test

import (
	"testing"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/forbeartest"
	"github.com/forbear-go/forbear/storetest"
)

func TestBudgetStoreInMemory(t *testing.T) {
	storetest.RunBudget(t, func(*testing.T) budget.Store { return &forbeartest.BudgetStore{} })
}
