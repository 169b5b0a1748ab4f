package main

import (
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestLayers: four requests to the service that is down, and not sixteen.
func TestLayers(t *testing.T) { guide.Check(t, "one-layer#See it", main) }
