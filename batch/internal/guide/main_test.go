package main

import (
	"os"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestGuide runs the program twice in one folder, as the guide does.
func TestGuide(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	guide.Check(t, "batch", func() {
		t.Chdir(t.TempDir())
		main()
		main()
		if err := os.Chdir(here); err != nil {
			t.Fatal(err)
		}
	})
}
