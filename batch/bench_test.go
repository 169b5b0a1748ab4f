package batch_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/batch"
)

// What an item costs beside its work: alone, with ids, and with a journal in a
// file.
func BenchmarkRun(b *testing.B) {
	nothing := func(context.Context, int) error { return nil }
	for _, c := range []struct {
		name string
		o    batch.Options[int]
	}{
		{"plain", batch.Options[int]{}},
		{"ids", batch.Options[int]{ID: name}},
		{"journal", batch.Options[int]{ID: name}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name == "journal" {
				c.o.Journal = open(b, filepath.Join(b.TempDir(), "j"))
			}
			b.ReportAllocs()
			report, err := batch.Run(b.Context(), retryer(b, calm()), numbers(b.N), nothing, c.o)
			if err != nil || report.Done != b.N {
				b.Fatal(err, report)
			}
		})
	}
}
