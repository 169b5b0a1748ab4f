package storm

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"
)

// WriteText writes the curve for a terminal: one line for each share, with a bar
// of what ends well.
func (c *Curve) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: what ends well, by the share of attempts that fail (%s engine)\n\n", c.Scenario, c.Engine)
	fmt.Fprintf(&b, "%6s %8s %11s %11s %7s  %s\n", "fail", "good", "no breaker", "no retries", "load x", "verdict")
	for _, p := range c.Points {
		bar := strings.Repeat("█", int(40*p.Good+0.5))
		bar += strings.Repeat("░", int(40*p.Unguarded+0.5)-int(40*p.Good+0.5))
		line := fmt.Sprintf("%4.3g %% %7.1f%% %10.1f%% %10.1f%% %7.3f  %-14s %s",
			100*p.Share, 100*p.Good, 100*p.Unguarded, 100*(1-p.Share), p.Multiplier, p.Verdict, bar)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n█ ends well, ░ would without breakers\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes one line per point.
func (c *Curve) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("share,good,good_without_breakers,multiplier,verdict\n")
	for _, p := range c.Points {
		line := appendNumber(nil, p.Share)
		for _, v := range [...]float64{p.Good, p.Unguarded, p.Multiplier} {
			line = appendNumber(append(line, ','), v)
		}
		b.Write(append(append(append(line, ','), p.Verdict...), '\n'))
	}
	return b.Flush()
}

// WriteSVG draws the curve, above that without breakers and that without
// retries.
func (c *Curve) WriteSVG(w io.Writer) error {
	const left, top, width, height = 52, 50, 560, 260
	x := func(v float64) float64 { return left + v*width }
	y := func(v float64) float64 { return top + (1-v)*height }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="system-ui,sans-serif" font-size="12">`,
		left+width+24, top+height+44)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="12" y="20" font-size="15" font-weight="600" fill="#1a202c">%s</text>`, html.EscapeString(c.Scenario))
	b.WriteString(`<text x="12" y="38" fill="#4a5568">calls that end well, by the share of attempts that fail</text>`)
	for i := range 5 {
		v := float64(i) / 4
		fmt.Fprintf(&b, `<path d="M%d %.1fh%d" stroke="#e2e8f0"/><text x="%d" y="%.1f" text-anchor="end" fill="#4a5568">%.0f %%</text>`, left, y(v), width, left-6, y(v)+4, 100*v)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#4a5568">%.0f %%</text>`, x(v), top+height+18, 100*v)
	}
	curve := func(name, color, dash string, row int, value func(Point) float64) {
		fmt.Fprintf(&b, `<path d="M%.1f %.1f`, x(0), y(1))
		for _, p := range c.Points {
			fmt.Fprintf(&b, "L%.1f %.1f", x(p.Share), y(value(p)))
		}
		fmt.Fprintf(&b, `" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, color, dash)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`, left+width-8, top+18+16*row, color, name)
	}
	curve("without retries", colorGrey, "2 4", 2, func(p Point) float64 { return 1 - p.Share })
	curve("without breakers", colorRetry, "6 4", 1, func(p Point) float64 { return p.Unguarded })
	curve("as configured", colorGood, "none", 0, func(p Point) float64 { return p.Good })
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
