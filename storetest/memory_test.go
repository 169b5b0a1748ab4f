package storetest

import "testing"

func TestMemoryStore(t *testing.T) {
	Run(t, func(*testing.T) Store { return &Memory{} })
}
