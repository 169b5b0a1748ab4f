package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

// The picture: success against the share of failures, one curve for each
// contender, labelled where there is room. Colours are readable on white and on
// black; what is not a curve has one for each.
const (
	width, height            = 760, 470
	left, right, top, bottom = 50, 26, 62, 44
)

const pictureStyle = `<style>
.ground{fill:#fff}.text{fill:#1a202c}.dim{fill:#4a5568}.grid{stroke:#e2e8f0}.halo{stroke:#fff}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}.text{fill:#f0f6fc}.dim{fill:#9da7b3}.grid{stroke:#2d333b}.halo{stroke:#0d1117}}
</style>`

// look says how a contender's curve is drawn.
type look struct {
	label       string
	color, dash string
	width       float64
}

var looks = map[string]look{
	nameForbear:   {"forbear", "#0d9488", "", 3.5},
	nameUnbroken:  {"forbear, no breaker", "#0d9488", "2 4", 2},
	nameBefore:    {"forbear before", "#e5484d", "", 2.5},
	nameFailsafe:  {"failsafe default", "#b7791f", "7 4", 1.5},
	nameTuned:     {"failsafe-go, tuned", "#b7791f", "", 1.5},
	nameGobreaker: {"gobreaker", "#9061f9", "", 1.5},
	nameR4j:       {"resilience4j", "#3b82f6", "", 1.5},
	nameEnvoy:     {"Envoy's budget", "#d53f8c", "", 1.5},
	nameEnvoy30:   {"Envoy, 30 s", "#d53f8c", "7 4", 1.5},
	nameNone:      {"one attempt", "#8492a6", "1 3", 1.5},
}

type point struct{ x, y float64 }

func writePicture(o options, rows []row, list []contender) error {
	curves, texts := make([][]point, len(list)), make([]string, len(list))
	for j, c := range list {
		texts[j] = looks[c.name].label
		for _, r := range rows {
			curves[j] = append(curves[j], point{x(r.fault.share), y(r.cells[j].success())})
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui,sans-serif" font-size="12">`, width, height, width, height)
	b.WriteString(`<title>Calls that succeed, by the share of requests that fail at random</title>` + pictureStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`, width, height)
	fmt.Fprintf(&b, `<text class="text" x="%d" y="22" font-size="15" font-weight="600">Calls that succeed, by the share of requests that fail at random</text>`, left)
	fmt.Fprintf(&b, `<text class="dim" x="%d" y="41">%d callers, %.0f calls/s, %.0f s for each point; forbear: default policy, base 50 ms; resilience4j and Envoy: models</text>`,
		left, o.callers, float64(o.callers)/o.every.Seconds(), o.length.Seconds())
	for i := 0; i <= 100; i += 20 {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text class="dim" x="%d" y="%.1f" text-anchor="end">%d %%</text>`,
			left, y(float64(i)/100), width-right, left-6, y(float64(i)/100)+4, i)
		fmt.Fprintf(&b, `<text class="dim" x="%.1f" y="%d" text-anchor="middle">%d %%</text>`, x(float64(i)/100), height-bottom+18, i)
	}
	fmt.Fprintf(&b, `<text class="dim" x="%.1f" y="%d" text-anchor="middle">requests that fail</text>`, x(0.5), height-8)
	for j := len(list) - 1; j >= 0; j-- { // the first is drawn last, above the others
		drawCurve(&b, looks[list[j].name], curves[j])
	}
	for j, l := range labels(texts, curves) {
		style := looks[list[j].name]
		weight := 400
		if style.width > 2 {
			weight = 700
		}
		if l.led {
			from := boxOf(l.point, style.label).nearest(l.to)
			fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s"/>`, from.x, from.y, l.to.x, l.to.y, style.color)
		}
		fmt.Fprintf(&b, `<text class="halo" x="%.1f" y="%.1f" font-weight="%d" fill="%s" stroke-width="4" stroke-linejoin="round" paint-order="stroke">%s</text>`,
			l.x, l.y, weight, style.color, html.EscapeString(style.label))
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(o.svg, []byte(b.String()), 0o644)
}

func x(share float64) float64   { return left + (width-left-right)*share }
func y(success float64) float64 { return top + (height-top-bottom)*(1-success) }

func drawCurve(b *strings.Builder, style look, points []point) {
	fmt.Fprintf(b, `<g fill="none" stroke="%s" stroke-width="%.1f" stroke-linejoin="round"><path stroke-dasharray="%s" d="`, style.color, style.width, style.dash)
	for i, p := range points {
		fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], p.x, p.y)
	}
	b.WriteString(`"/>`)
	for _, p := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" stroke="none"/>`, p.x, p.y, style.width/2+1, style.color)
	}
	fmt.Fprintf(b, `<title>%s</title></g>`, html.EscapeString(style.label))
}
