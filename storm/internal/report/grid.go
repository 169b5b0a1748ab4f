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
