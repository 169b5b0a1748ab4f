package storm

import (
	"bufio"
	"io"
	"math"
)

// WriteCSV writes one line per bin.
func (r *Result) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("t_s,offered,fresh,retry,good,failed,multiplier,p50_ms,p99_ms,queue_s,budget,breaker,wasted\n")
	s := &r.Series
	for i := range s.Fresh {
		line := appendNumber(nil, float64(i)*r.Bin.Seconds())
		for _, v := range [...]float64{
			s.Offered[i], s.Fresh[i], s.Retry[i], s.Good[i], s.Failed[i], s.Multiplier[i], float64(s.P50[i]), float64(s.P99[i]),
			s.Queue[i], s.Budget[i], s.Breaker[i], s.Wasted[i],
		} {
			line = append(line, ',')
			if !math.IsNaN(v) {
				line = appendNumber(line, v)
			}
		}
		b.Write(append(line, '\n'))
	}
	return b.Flush()
}

// WriteCSV writes one line per cell.
func (s *Sweep) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("load,trigger_s,verdict,recovery_s,multiplier,final_goodput\n")
	for i, row := range s.Cells {
		for j, c := range row {
			line := appendNumber(nil, s.Loads[i])
			line = appendNumber(append(line, ','), s.Triggers[j].Seconds())
			line = append(append(line, ','), c.Verdict...)
			for _, v := range [...]float64{c.Recovery, c.Multiplier, c.Goodput} {
				line = appendNumber(append(line, ','), v)
			}
			b.Write(append(line, '\n'))
		}
	}
	return b.Flush()
}
