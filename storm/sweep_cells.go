package storm

import (
	"context"
	"slices"

	"github.com/forbear-go/forbear/storm/internal/parallel"
)

// A few runs of each cell show where the edge is. Along the edge chance decides, and more
// runs say how often.
const (
	fewSeeds  = 3
	edgeSeeds = 12
)

// fill runs the cells of the map, and those along its edge more often.
func (w *Sweep) fill(ctx context.Context, s Scenario, o Options, progress func(done, of int)) error {
	columns := len(w.Triggers)
	results := make([][]Summary, len(w.Loads)*columns)
	before := 0 // runs of the first round: who hears of the progress estimates the time by all
	// more runs each of the cells until it has so many runs.
	more := func(cells []int, runs int) error {
		had := len(results[cells[0]])
		each := runs - had
		hear := func(done, of int) {
			if progress != nil {
				progress(before+done, before+of)
			}
		}
		all, err := parallel.Map(ctx, len(cells)*each, hear, func(k int) (Summary, error) {
			cell, seed := cells[k/each], had+k%each
			r, err := Run(ctx, s.loaded(w.Loads[cell/columns]).lengthened(w.Triggers[cell%columns]).reseeded(seed), o)
			if err != nil {
				return Summary{}, err
			}
			return r.Summary, nil
		})
		for i, r := range all {
			cell := cells[i/each]
			results[cell] = append(results[cell], r)
		}
		before += len(all)
		return err
	}
	every := make([]int, len(results))
	for i := range every {
		every[i] = i
	}
	if err := more(every, fewSeeds); err != nil {
		return err
	}
	w.sum(results)
	if edge := w.edge(); len(edge) > 0 {
		if err := more(edge, edgeSeeds); err != nil {
			return err
		}
	}
	w.sum(results)
	return nil
}

// sum makes the cells of the results that there are.
func (w *Sweep) sum(results [][]Summary) {
	cells := make([]Cell, len(results))
	for i, all := range results {
		cells[i] = cellOf(all)
	}
	w.Cells = slices.Collect(slices.Chunk(cells, len(w.Triggers))) // a row for each load
}

// worst are the verdicts from the worst on.
var worst = []Verdict{Metastable, Overloaded, Limited, SelfInflicted, Undecided, Recovered, Steady}

// cellOf returns what all runs of one cell, of which there is one at least, come to.
func cellOf(all []Summary) Cell {
	c := Cell{Runs: len(all), Recovery: -1}
	recovered, seconds := 0, 0.0
	times := map[Verdict]int{}
	for i := range all {
		s := &all[i]
		times[s.Verdict]++
		c.Multiplier += s.Multiplier / float64(len(all))
		c.Goodput += s.FinalGoodput / float64(len(all))
		if s.Recovery >= 0 {
			recovered++
			seconds += s.Recovery
		}
	}
	for _, v := range worst {
		if times[v] > times[c.Verdict] {
			c.Verdict = v
		}
	}
	c.Stuck = times[Metastable]
	c.Interval = wilson(c.Stuck, c.Runs)
	if recovered > 0 {
		c.Recovery = seconds / float64(recovered)
	}
	return c
}

// edge returns the indices of the cells where some runs are stuck and some are not, or
// beside which the runs end otherwise.
func (w *Sweep) edge() (cells []int) {
	columns := len(w.Triggers)
	stuck := func(i, j int) (share float64, ok bool) {
		if i < 0 || j < 0 || i >= len(w.Cells) || j >= columns {
			return 0, false
		}
		return float64(w.Cells[i][j].Stuck) / float64(w.Cells[i][j].Runs), true
	}
	for k := range len(w.Cells) * columns {
		i, j := k/columns, k%columns
		share, _ := stuck(i, j)
		mixed := share > 0 && share < 1
		for _, d := range [][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
			beside, ok := stuck(i+d[0], j+d[1])
			mixed = mixed || ok && beside != share
		}
		if mixed {
			cells = append(cells, k)
		}
	}
	return cells
}
