package storm

import (
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// WriteText writes the map for a terminal: one row for each load.
func (s *Sweep) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: what stays, by load and length of the first fault (%s engine)\n", s.Scenario, s.Engine)
	b.WriteString("seconds until it is back: . at once, 1-9 tens of percent of a minute, X never, O overloaded anyway, S self-inflicted, ? undecided\n\n")
	for i := len(s.Loads) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%5.2fx ", s.Loads[i])
		for _, c := range s.Cells[i] {
			b.WriteByte(' ')
			b.WriteByte(c.letter())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%6s  %v to %v\n", "", s.Triggers[0], s.Triggers[len(s.Triggers)-1])
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Cell) letter() byte {
	switch {
	case c.Verdict == Metastable:
		return 'X'
	case c.Verdict == Overloaded:
		return 'O'
	case c.Verdict == SelfInflicted:
		return 'S'
	case c.Verdict == Undecided:
		return '?'
	case c.Recovery < 1:
		return '.'
	}
	return byte('0' + min(9, 1+int(c.Recovery/6)))
}

// WriteCSV writes one line per cell.
func (s *Sweep) WriteCSV(w io.Writer) error {
	n := len(s.Triggers)
	return report.WriteCSV(w, "load,trigger_s,verdict,recovery_s,multiplier,final_goodput", len(s.Loads)*n, func(k int) []any {
		i, j := k/n, k%n
		c := s.Cells[i][j]
		return []any{s.Loads[i], s.Triggers[j].Seconds(), string(c.Verdict), c.Recovery, c.Multiplier, c.Goodput}
	})
}

// WriteSVG draws the map: green at once, through amber with the time to
// recover, to red for never.
func (s *Sweep) WriteSVG(w io.Writer) error {
	g := report.Grid{
		Title: s.Scenario,
		About: "time to recover, by load (up) and length of the fault (right); X: never, S: self-inflicted",
		Cell: func(i, j int) report.Cell {
			c := s.Cells[i][j]
			hint := fmt.Sprintf("%.2fx, %v: %s, %.1f s", s.Loads[i], s.Triggers[j], c.Verdict, c.Recovery)
			return report.Cell{Color: c.color(), Hint: hint, Letter: c.letter()}
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

func (c Cell) color() string {
	switch c.Verdict {
	case Metastable:
		return "#fc8181"
	case Overloaded:
		return "#cbd5e0"
	case SelfInflicted:
		return "#d6bcfa"
	case Undecided:
		return "#edf2f7"
	}
	hue := 120 - 80*min(1, max(0, c.Recovery)/40)
	return fmt.Sprintf("hsl(%.0f 60%% 72%%)", hue)
}
