package report

import (
	"bufio"
	"io"
	"math"
)

// WriteCSV writes a header and n lines. The cells of a line are strings that need
// no quotes, and float64: what is not a number leaves its cell empty.
func WriteCSV(w io.Writer, header string, n int, line func(i int) []any) error {
	b := bufio.NewWriter(w)
	b.WriteString(header)
	var text []byte
	for i := range n {
		text = append(text[:0], '\n')
		for j, cell := range line(i) {
			if j > 0 {
				text = append(text, ',')
			}
			switch v := cell.(type) {
			case string:
				text = append(text, v...)
			case float64:
				if !math.IsNaN(v) {
					text = AppendNumber(text, v)
				}
			}
		}
		b.Write(text)
	}
	b.WriteByte('\n')
	return b.Flush()
}
