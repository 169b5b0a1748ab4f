package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// sparks are the levels of a sparkline, from nothing to the top.
const sparks = "▁▂▃▄▅▆▇█"

// Sparkline draws values in width characters, from 0 to top. A character shows the
// peak of the values that fall on it, so that a spike of one bin is not lost; where
// there is no value it leaves a space. Fewer values than characters take one each.
func Sparkline(values []float64, width int, top float64) string {
	var b strings.Builder
	levels := []rune(sparks)
	for i := range min(width, len(values)) {
		// The values that fall on this character.
		from, to := i*len(values)/width, (i+1)*len(values)/width
		if len(values) < width {
			from, to = i, i+1
		}
		peak := greatest(values[from:max(to, from+1)])
		switch {
		case math.IsNaN(peak):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(levels[0])
		default:
			n := int(peak / top * float64(len(levels)))
			b.WriteRune(levels[max(0, min(n, len(levels)-1))])
		}
	}
	return b.String()
}

// Row is one series of a text: its name, a sparkline from 0 to Top, and its peak.
type Row struct {
	Name   string
	Values []float64
	Top    float64
	Unit   string
}

// WriteRows writes rows of width characters over the time of a run, below marks where
// the spans are.
func WriteRows(w io.Writer, duration time.Duration, spans [][2]time.Duration, width int, rows ...Row) {
	if len(spans) > 0 && len(rows) > 0 {
		mark := []byte(strings.Repeat(" ", min(width, len(rows[0].Values))))
		for i := range mark {
			at := time.Duration((float64(i) + 0.5) / float64(len(mark)) * float64(duration))
			for _, s := range spans {
				if at >= s[0] && at < s[1] {
					mark[i] = '='
				}
			}
		}
		fmt.Fprintf(w, "%-11s %s\n", "fault", strings.TrimRight(string(mark), " "))
	}
	for _, row := range rows {
		fmt.Fprintf(w, "%-11s %s %s%s\n", row.Name, Sparkline(row.Values, width, row.Top), Amount(Peak(row.Values)), row.Unit)
	}
}
