package storetest_test

import (
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forbeartest"
	"github.com/forbear-go/forbear/storetest"
)

func TestBudgetStoreInMemory(t *testing.T) {
	storetest.RunBudget(t, func(*testing.T) forbear.BudgetStore { return &forbeartest.BudgetStore{} })
}
