package storm

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// line is one curve of a panel.
type line struct {
	name   string
	color  string
	values []float64
	area   bool
}

// panel is one chart over the time of a run.
type panel struct {
	title string
	unit  string
	lines []line
	level float64 // a dashed line; 0 is none
	note  string  // of the dashed line
}

const (
	colorFresh = "#2c7a7b"
	colorRetry = "#c05621"
	colorGood  = "#2f855a"
	colorGrey  = "#718096"
	colorAlarm = "#c53030"
)

// panels returns the charts of r.
func (r *Result) panels() []panel {
	s := &r.Series
	total := make([]float64, len(s.Fresh))
	for i := range total {
		total[i] = s.Fresh[i] + s.Retry[i]
	}
	return []panel{
		{"Arrivals: fresh, and with retries", "/s", []line{{"with retries", colorRetry, total, true}, {"fresh", colorFresh, s.Fresh, true}}, 0, ""},
		{"Goodput", "/s", []line{{"offered", colorGrey, s.Offered, false}, {"good", colorGood, s.Good, true}}, 0, ""},
		{"Multiplier", "x", []line{{"multiplier", colorRetry, s.Multiplier, false}}, 1, "no retries"},
		{"Latency of good calls", " ms", []line{{"p99", colorRetry, plain(s.P99), false}, {"p50", colorFresh, plain(s.P50), false}}, 0, ""},
		{"Queue", " s", []line{{"queue", colorFresh, s.Queue, true}}, 0, ""},
		{"Budget used and breakers open", "", []line{{"budget", colorRetry, s.Budget, false}, {"breaker", colorAlarm, s.Breaker, true}}, 1, "spent"},
	}
}

const (
	panelWidth  = 720
	panelHeight = 170
	plotLeft    = 64
	plotRight   = 12
	plotTop     = 26
	plotBottom  = 24
)

// WriteSVG writes the charts of r as one picture.
func (r *Result) WriteSVG(w io.Writer) error {
	panels := r.panels()
	var b strings.Builder
	height := 44 + len(panels)*panelHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui,sans-serif" font-size="11">`, panelWidth, height, panelWidth, height)
	fmt.Fprintf(&b, `<title>%s</title><rect width="100%%" height="100%%" fill="#fff"/>`, html.EscapeString(r.Scenario))
	fmt.Fprintf(&b, `<text x="12" y="20" font-size="15" font-weight="600" fill="#1a202c">%s</text><text x="12" y="37" fill="#4a5568">%s</text>`,
		html.EscapeString(r.Scenario), html.EscapeString(r.Headline()))
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`, 44+i*panelHeight)
		r.drawPanel(&b, p)
		b.WriteString(`</g>`)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// panelSVG returns p as a picture of its own, for the report.
func (r *Result) panelSVG(p panel) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s" font-family="system-ui,sans-serif" font-size="11">`, panelWidth, panelHeight, html.EscapeString(p.title))
	r.drawPanel(&b, p)
	b.WriteString(`</svg>`)
	return b.String()
}

func (r *Result) drawPanel(b *strings.Builder, p panel) {
	top := p.level
	for _, l := range p.lines {
		top = max(top, peak(l.values))
	}
	top = roundUp(top)
	const w, h = panelWidth - plotLeft - plotRight, panelHeight - plotTop - plotBottom
	y := func(v float64) float64 { return plotTop + h*(1-min(v/top, 1)) }
	if r.Trigger != nil && r.Duration > 0 {
		from := plotLeft + w*r.Trigger[0].Seconds()/r.Duration.Seconds()
		to := plotLeft + w*min(1, r.Trigger[1].Seconds()/r.Duration.Seconds())
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#feebc8"><title>fault</title></rect>`, from, plotTop, max(to-from, 1), h)
	}
	for i := range 3 {
		v := top * float64(i) / 2
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#e2e8f0"/><text x="%d" y="%.1f" text-anchor="end" fill="#4a5568">%s%s</text>`,
			plotLeft, y(v), w, plotLeft-5, y(v)+4, amount(v), p.unit)
	}
	for i := range 5 {
		t := r.Duration.Seconds() * float64(i) / 4
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#4a5568">%s s</text>`, plotLeft+w*float64(i)/4, panelHeight-8, amount(t))
	}
	for _, l := range p.lines {
		drawLine(b, l, w, y)
	}
	if p.level > 0 {
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#718096" stroke-dasharray="4 3"><title>%s</title></path>`, plotLeft, y(p.level), w, p.note)
	}
	fmt.Fprintf(b, `<text x="%d" y="15" font-weight="600" fill="#1a202c">%s</text>`, plotLeft, html.EscapeString(p.title))
	x := panelWidth - plotRight
	for _, l := range p.lines {
		fmt.Fprintf(b, `<text x="%d" y="15" text-anchor="end" fill="%s">%s</text>`, x, l.color, l.name)
		x -= 8*len(l.name) + 14
	}
}

// drawLine draws at most one point per pixel, the peak of the bins that fall
// on it; gaps stay gaps.
func drawLine(b *strings.Builder, l line, w int, y func(float64) float64) {
	n := len(l.values)
	if n == 0 {
		return
	}
	points := min(n, w)
	var path, area strings.Builder
	started, last := false, 0.0
	for i := range points {
		v := math.NaN()
		for _, u := range l.values[i*n/points : max((i+1)*n/points, i*n/points+1)] {
			if !math.IsNaN(u) && !(u < v) {
				v = u
			}
		}
		x := plotLeft + float64(w)*(float64(i)+0.5)/float64(points)
		if math.IsNaN(v) {
			if started {
				fmt.Fprintf(&area, "L%.1f %.1fZ", last, y(0))
			}
			started = false
			continue
		}
		if !started {
			fmt.Fprintf(&path, "M%.1f %.1f", x, y(v))
			fmt.Fprintf(&area, "M%.1f %.1fL%.1f %.1f", x, y(0), x, y(v))
		} else {
			fmt.Fprintf(&path, "L%.1f %.1f", x, y(v))
			fmt.Fprintf(&area, "L%.1f %.1f", x, y(v))
		}
		started, last = true, x
	}
	if started {
		fmt.Fprintf(&area, "L%.1f %.1fZ", last, y(0))
	}
	if l.area {
		fmt.Fprintf(b, `<path d="%s" fill="%s" fill-opacity=".25"/>`, area.String(), l.color)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, path.String(), l.color)
}

// roundUp returns the next 1, 2 or 5 times a power of ten.
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

// WriteSVG draws the map: green at once, through amber with the time to
// recover, to red for never.
func (s *Sweep) WriteSVG(w io.Writer) error {
	const left, top, cell = 70, 54, 26
	nx, ny := len(s.Triggers), len(s.Loads)
	width, height := left+nx*cell+20, top+ny*cell+46
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui,sans-serif" font-size="11">`, width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="12" y="20" font-size="14" font-weight="600">%s</text>`, html.EscapeString(s.Scenario))
	b.WriteString(`<text x="12" y="38" fill="#4a5568">time to recover, by load (up) and length of the fault (right); X: never, S: self-inflicted</text>`)
	for i := range s.Loads {
		y := top + (ny-1-i)*cell
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%.2fx</text>`, left-6, y+cell/2+4, s.Loads[i])
		for j, c := range s.Cells[i] {
			x := left + j*cell
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%.2fx, %v: %s, %.1f s</title></rect><text x="%d" y="%d" text-anchor="middle" fill="#1a202c">%c</text>`,
				x, y, cell-1, cell-1, c.color(), s.Loads[i], s.Triggers[j], c.Verdict, c.Recovery, x+cell/2, y+cell/2+4, c.letter())
		}
	}
	for j := 0; j < nx; j += max(1, nx/6) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s s</text>`, left+j*cell+cell/2, top+ny*cell+16, amount(s.Triggers[j].Seconds()))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
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
