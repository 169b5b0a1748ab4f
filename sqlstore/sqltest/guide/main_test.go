package main

import (
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/guide"
)

func TestGuide(t *testing.T) { guide.Prints(t, "inbox", main) }
