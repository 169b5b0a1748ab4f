package storetest

import (
	"testing"

	"github.com/forbear-go/forbear/idempotency"
)

func TestMemoryIdempotency(t *testing.T) {
	RunIdempotency(t, func(*testing.T) idempotency.Store { return idempotency.NewMemory(nil) })
}
