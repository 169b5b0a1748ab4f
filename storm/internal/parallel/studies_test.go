package parallel_test

import (
	"context"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// The runs of a study are apart: what one of them changes no other may see. Under the
// race detector this finds what they share; storm's own tests run without it.
func TestStudiesShareNothing(t *testing.T) {
	partial, _ := storm.FindNamed("partial")
	layers, _ := storm.FindNamed("five-layers")
	for _, s := range []*storm.Scenario{&partial, &layers} {
		s.Duration = storm.Duration(5 * time.Second)
		for i := range s.Faults {
			s.Faults[i].At, s.Faults[i].For = storm.Duration(time.Second), storm.Duration(2*time.Second)
		}
	}
	for name, study := range map[string]func(ctx context.Context, progress func(done, of int)) error{
		"compare layers": func(ctx context.Context, progress func(done, of int)) error {
			_, err := storm.Compare(ctx, layers, storm.Options{}, progress)
			return err
		},
		"compare": func(ctx context.Context, progress func(done, of int)) error {
			_, err := storm.Compare(ctx, partial, storm.Options{}, progress)
			return err
		},
		"curve": func(ctx context.Context, progress func(done, of int)) error {
			_, err := storm.RunCurve(ctx, partial, 4, storm.Options{}, progress)
			return err
		},
		"sweep": func(ctx context.Context, progress func(done, of int)) error {
			_, err := storm.RunSweep(ctx, partial, storm.SweepBounds{Loads: 2, Triggers: 2, Longest: storm.Duration(time.Second)}, storm.Options{}, progress)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			if err := study(t.Context(), func(done, of int) { runs++ }); err != nil || runs < 4 {
				t.Errorf("%d runs: %v", runs, err)
			}
		})
	}
}
