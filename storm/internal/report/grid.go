package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
)

// Grid is a map of colored cells with a letter in each. Rows go up.
type Grid struct {
	Title, About string
	// Rows and Columns are their labels.
	Rows, Columns []string
	// Cell returns one square, by the indices of its row and column.
	Cell func(row, column int) Cell
}

// Cell is one square of a [Grid].
type Cell struct {
	Color  string
	Hint   string // shown when the pointer is over it
	Letter byte
}

// WriteSVG draws the map, with a label beside each row. At most about six columns get their label.
func (g *Grid) WriteSVG(w io.Writer) error {
	const left, top, cell = 70, 54, 26
	nx, ny := len(g.Columns), len(g.Rows)
	width, height := left+nx*cell+20, top+ny*cell+46
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui,sans-serif" font-size="11">`, width, height, width, height)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="600">%s</text>`, html.EscapeString(g.Title))
	fmt.Fprintf(b, `<text x="12" y="38" fill="#4a5568">%s</text>`, html.EscapeString(g.About))
	for i, row := range g.Rows {
		y := top + (ny-1-i)*cell
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-6, y+cell/2+4, html.EscapeString(row))
		for j := range g.Columns {
			x, c := left+j*cell, g.Cell(i, j)
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s</title></rect><text x="%d" y="%d" text-anchor="middle" fill="#1a202c">%c</text>`,
				x, y, cell-1, cell-1, c.Color, html.EscapeString(c.Hint), x+cell/2, y+cell/2+4, c.Letter)
		}
	}
	for j := 0; j < nx; j += max(1, nx/6) {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, left+j*cell+cell/2, top+ny*cell+16, html.EscapeString(g.Columns[j]))
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}

// Shares is a picture of lines over a share of 0 to 1, which are shares
// themselves. Every line begins at (0, 1).
type Shares struct {
	Title, About string
	At           []float64 // the shares at which the lines have their values
	Lines        []Line    // the last is drawn on top, and named first
}

// WriteSVG draws the lines on a grid of quarters.
func (s *Shares) WriteSVG(w io.Writer) error {
	const left, top, width, height = 52, 50, 560, 260
	x := func(v float64) float64 { return left + v*width }
	y := func(v float64) float64 { return top + (1-v)*height }
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="system-ui,sans-serif" font-size="12">`,
		left+width+24, top+height+44)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="12" y="20" font-size="15" font-weight="600" fill="#1a202c">%s</text>`, html.EscapeString(s.Title))
	fmt.Fprintf(b, `<text x="12" y="38" fill="#4a5568">%s</text>`, html.EscapeString(s.About))
	for i := range 5 {
		v := float64(i) / 4
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#e2e8f0"/><text x="%d" y="%.1f" text-anchor="end" fill="#4a5568">%.0f %%</text>`, left, y(v), width, left-6, y(v)+4, 100*v)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#4a5568">%.0f %%</text>`, x(v), top+height+18, 100*v)
	}
	for i, l := range s.Lines {
		fmt.Fprintf(b, `<path d="M%.1f %.1f`, x(0), y(1))
		for j, v := range l.Values {
			fmt.Fprintf(b, "L%.1f %.1f", x(s.At[j]), y(v))
		}
		fmt.Fprintf(b, `" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, l.Color, l.Dash)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`, left+width-8, top+18+16*(len(s.Lines)-1-i), l.Color, html.EscapeString(l.Name))
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}
