package storm

import (
	"bufio"
	"fmt"
	"io"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// WriteText writes the map for a terminal: one row for each load, the greatest on
// top, and one letter for each trigger.
func (s *Sweep) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: recovery, by load and length of the first fault\n", s.Scenario)
	b.WriteString("time to recover: . at once, 1-9 tenths of a minute, X never, x never in some runs, O overloaded anyway, S self-inflicted, ? undecided\n\n")
	for i := len(s.Loads) - 1; i >= 0; i-- {
		fmt.Fprintf(b, "%5.2fx ", s.Loads[i])
		for _, c := range s.Cells[i] {
			letter, _ := c.look()
			fmt.Fprintf(b, " %c", letter)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%6s  %s to %s\n", "", s.Triggers[0].Brief(), s.Triggers[len(s.Triggers)-1].Brief())
	s.writeMixed(b)
	return b.Flush()
}

// writeMixed writes how often chance decides against the service, where it decides.
func (s *Sweep) writeMixed(w io.Writer) {
	title := "\nx: runs that never recover, and the 95 % interval of their share\n"
	for i := len(s.Loads) - 1; i >= 0; i-- {
		for j, c := range s.Cells[i] {
			if c.Stuck > 0 && c.Stuck < c.Runs {
				fmt.Fprintf(w, "%s%5.2fx, %s: %d of %d, %.0f to %.0f %%\n", title, s.Loads[i], s.Triggers[j].Brief(), c.Stuck, c.Runs, 100*c.Interval[0], 100*c.Interval[1])
				title = ""
			}
		}
	}
}

// looks are the letter and the color of what ends in another way than in a recovery.
var looks = map[Verdict]struct {
	letter byte
	color  string
}{
	Metastable:    {'X', "#fc8181"},
	Overloaded:    {'O', "#cbd5e0"},
	Limited:       {'O', "#cbd5e0"},
	SelfInflicted: {'S', "#d6bcfa"},
	Undecided:     {'?', "#edf2f7"},
}

// look returns what stands for c in a map: a letter, and the color of a picture. Forty
// seconds are as bad as any recovery looks.
func (c Cell) look() (letter byte, color string) {
	if c.Stuck > 0 && c.Stuck < c.Runs {
		return 'x', "#feb2b2"
	}
	if l, ok := looks[c.Verdict]; ok {
		return l.letter, l.color
	}
	hue := 120 - 80*min(1, max(0, c.Recovery)/40)
	color = fmt.Sprintf("hsl(%.0f 60%% 72%%)", hue)
	if c.Recovery < 1 {
		return '.', color
	}
	return byte('0' + min(9, 1+int(c.Recovery/6))), color
}

// WriteCSV writes one line per cell.
func (s *Sweep) WriteCSV(w io.Writer) error {
	n := len(s.Triggers)
	return report.WriteCSV(w, "load,trigger_s,verdict,stuck,runs,stuck_low,stuck_high,recovery_s,multiplier,final_goodput", len(s.Loads)*n, func(k int) []any {
		i, j := k/n, k%n
		c := s.Cells[i][j]
		return []any{s.Loads[i], s.Triggers[j].Seconds(), string(c.Verdict), float64(c.Stuck), float64(c.Runs), c.Interval[0], c.Interval[1], c.Recovery, c.Multiplier, c.Goodput}
	})
}

// WriteSVG draws the map: green at once, through amber with the time to
// recover, to red for never.
func (s *Sweep) WriteSVG(w io.Writer) error {
	g := report.Grid{
		Title: s.Scenario,
		About: "time to recover, by load (up) and length of the fault (right); X: never, x: never in some runs, S: self-inflicted",
		Cell: func(i, j int) report.Cell {
			c := s.Cells[i][j]
			hint := fmt.Sprintf("%.2fx, %s: %s, %d of %d runs never recover", s.Loads[i], s.Triggers[j], c.Verdict, c.Stuck, c.Runs)
			letter, color := c.look()
			return report.Cell{Color: color, Hint: hint, Letter: letter}
		},
	}
	for _, load := range s.Loads {
		g.Rows = append(g.Rows, fmt.Sprintf("%.2fx", load))
	}
	for _, t := range s.Triggers {
		g.Columns = append(g.Columns, report.Amount(t.Seconds())+" s")
	}
	return g.WriteSVG(w)
}
