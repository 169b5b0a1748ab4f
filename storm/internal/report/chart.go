package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"
)

// Chart is a column of panels over the time of a run. Title and Subtitle may hold
// any text: they are escaped.
type Chart struct {
	Title, Subtitle string
	Duration        time.Duration
	Faults          [][2]time.Duration // spans that are shaded
	Panels          []Panel
}

// Panel is one picture of a chart.
type Panel struct {
	Title string
	Unit  string
	Lines []Line
	Level float64 // a dashed line; 0 is none
	Note  string  // of the dashed line
}

// Line is one curve of a panel. What is not a number is a gap in it.
type Line struct {
	Name   string
	Color  string
	Values []float64
	Area   bool   // filled down to 0
	Dash   string // of a [Shares] picture; empty is none
}

// The colors of lines: dark enough to be told apart on white, also in print.
const (
	Teal   = "#2c7a7b"
	Orange = "#c05621"
	Green  = "#2f855a"
	Grey   = "#718096"
	Red    = "#c53030"
)

// Sizes are in pixels of a picture that scales to its page.
const (
	panelWidth  = 720
	panelHeight = 170
	plotLeft    = 64
	plotRight   = 12
	plotTop     = 26
	plotBottom  = 24
)

// WriteSVG writes all panels as one picture.
func (c *Chart) WriteSVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	height := 44 + len(c.Panels)*panelHeight
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui,sans-serif" font-size="11">`, panelWidth, height, panelWidth, height)
	fmt.Fprintf(b, `<title>%s</title><rect width="100%%" height="100%%" fill="#fff"/>`, html.EscapeString(c.Title))
	fmt.Fprintf(b, `<text x="12" y="20" font-size="15" font-weight="600" fill="#1a202c">%s</text><text x="12" y="37" fill="#4a5568">%s</text>`,
		html.EscapeString(c.Title), html.EscapeString(c.Subtitle))
	for i, p := range c.Panels {
		fmt.Fprintf(b, `<g transform="translate(0 %d)">`, 44+i*panelHeight)
		c.drawPanel(b, p)
		b.WriteString(`</g>`)
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}

// panelSVG returns p as a picture of its own, for a page.
func (c *Chart) panelSVG(p Panel) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s" font-family="system-ui,sans-serif" font-size="11">`, panelWidth, panelHeight, html.EscapeString(p.Title))
	c.drawPanel(&b, p)
	b.WriteString(`</svg>`)
	return b.String()
}

// drawPanel draws p: the span of the fault below everything, the grid, the lines, the
// level and the names. The scale ends at a round number above the peak.
func (c *Chart) drawPanel(b io.Writer, p Panel) {
	top := p.Level
	for _, l := range p.Lines {
		top = max(top, Peak(l.Values))
	}
	top = roundUp(top)
	// The plot is what is left of the panel beside its labels.
	const w, h = panelWidth - plotLeft - plotRight, panelHeight - plotTop - plotBottom
	y := func(v float64) float64 { return plotTop + h*(1-min(v/top, 1)) }
	for _, f := range c.Faults {
		from := plotLeft + w*f[0].Seconds()/c.Duration.Seconds()
		to := plotLeft + w*min(1, f[1].Seconds()/c.Duration.Seconds())
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#feebc8"><title>fault</title></rect>`, from, plotTop, max(to-from, 1), h)
	}
	for i := range 3 {
		v := top * float64(i) / 2
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#e2e8f0"/><text x="%d" y="%.1f" text-anchor="end" fill="#4a5568">%s%s</text>`,
			plotLeft, y(v), w, plotLeft-5, y(v)+4, Amount(v), html.EscapeString(p.Unit))
	}
	for i := range 5 {
		t := c.Duration.Seconds() * float64(i) / 4
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#4a5568">%s s</text>`, plotLeft+w*float64(i)/4, panelHeight-8, Amount(t))
	}
	for _, l := range p.Lines {
		drawLine(b, l, w, y)
	}
	if p.Level > 0 {
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#718096" stroke-dasharray="4 3"/><text x="%d" y="%.1f" text-anchor="end" fill="#4a5568">%s</text>`, plotLeft, y(p.Level), w, plotLeft+w, y(p.Level)+12, html.EscapeString(p.Note))
	}
	fmt.Fprintf(b, `<text x="%d" y="15" font-weight="600" fill="#1a202c">%s</text>`, plotLeft, html.EscapeString(p.Title))
	// The names of the lines stand at the right, the first outermost.
	x := panelWidth - plotRight
	for _, l := range p.Lines {
		fmt.Fprintf(b, `<text x="%d" y="15" text-anchor="end" fill="%s">%s</text>`, x, l.Color, html.EscapeString(l.Name))
		x -= 8*len(l.Name) + 14
	}
}

// drawLine draws at most one point per pixel, the peak of the bins that fall
// on it; gaps stay gaps. y turns a value into a height. A picture of 20,000 bins is
// as small as one of 600.
func drawLine(b io.Writer, l Line, w int, y func(float64) float64) {
	n := len(l.Values)
	if n == 0 {
		return
	}
	points := min(n, w)
	var path, area strings.Builder
	// A gap ends the area below its last point, and the next point begins both anew.
	move, end := "M", ""
	for i := range points {
		v := greatest(l.Values[i*n/points : max((i+1)*n/points, i*n/points+1)])
		if math.IsNaN(v) {
			area.WriteString(end)
			move, end = "M", ""
			continue
		}
		x := plotLeft + float64(w)*(float64(i)+0.5)/float64(points)
		if move == "M" {
			fmt.Fprintf(&area, "M%.1f %.1f", x, y(0))
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", move, x, y(v))
		fmt.Fprintf(&area, "L%.1f %.1f", x, y(v))
		move, end = "L", fmt.Sprintf("L%.1f %.1fZ", x, y(0))
	}
	area.WriteString(end)
	if l.Area {
		fmt.Fprintf(b, `<path d="%s" fill="%s" fill-opacity=".25"/>`, area.String(), l.Color)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, path.String(), l.Color)
}

// roundUp returns the next round number: 1, 1.5, 2, 3, 4, 5 or 7.5 times a power of
// ten. A tick of rounding does not count as being above.
func roundUp(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 1.5, 2, 3, 4, 5, 7.5, 10} {
		if v <= k*p*1.0001 {
			return k * p
		}
	}
	return 10 * p
}
