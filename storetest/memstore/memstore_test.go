package memstore_test

import (
	"testing"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

func TestStore(t *testing.T) {
	storetest.RunDeliveries(t, func(*testing.T) storetest.Store { return &memstore.Store{} })
}

func TestIdempotency(t *testing.T) {
	storetest.RunIdempotency(t, func(*testing.T) idempotency.Store { return &memstore.Idempotency{} })
}

func TestBudget(t *testing.T) {
	storetest.RunBudget(t, func(*testing.T) budget.Store { return &memstore.Budget{} })
}
