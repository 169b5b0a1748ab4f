package probe

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// style is that of the page, in light and dark.
const style = `:root{color-scheme:light dark;--soft:#667;--good:#176f3d;--bad:#b3261e;--line:#8886}
@media (prefers-color-scheme:dark){:root{--soft:#9aa4b2;--good:#57d38c;--bad:#ff8f86}}
body{font:15px/1.45 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.2rem}table{border-collapse:collapse;width:100%}td{border-top:1px solid var(--line);padding:.35rem .5rem;vertical-align:top}
td:first-child{white-space:nowrap}.holds{color:var(--good)}.fails{color:var(--bad);font-weight:600}.soft,.told{color:var(--soft)}
svg{display:block;max-width:100%}svg text{font-size:11px;fill:currentColor}`

// html writes the report as one page without scripts: each case with the times of its
// requests, and the waits beside the law that was found.
func (r *Report) html(w io.Writer) error {
	var b strings.Builder
	e := html.EscapeString
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>forbear probe: %s</title><style>%s</style>\n", e(r.Agent), style)
	fmt.Fprintf(&b, "<h1>%s</h1><p class=\"soft\"><code>%s</code></p>\n", e(r.name()), e(strings.Join(r.Command, " ")))
	fmt.Fprintf(&b, "<p>%d hold, <b>%d do not</b>, %d could not be judged.</p>\n", r.count(Holds), r.count(Fails), r.count(NotJudged))
	for q, words := range questions {
		fmt.Fprintf(&b, "<h2>%s</h2><table>\n", e(words))
		for i := range r.Cases {
			f := &r.Cases[i]
			if f.question != q {
				continue
			}
			fmt.Fprintf(&b, "<tr id=\"%s\"><td class=\"%s\">%s</td><td>%s: %s%s", e(f.ID), strings.ReplaceAll(f.Outcome, " ", "-"), e(f.Outcome), e(f.Title), e(f.Why), e(rule(f)))
			if f.ID == "R-1/law" && r.Law != nil {
				b.WriteString(r.drawLaw())
			} else {
				b.WriteString(timelines(f.Runs))
			}
			b.WriteString("</td></tr>\n")
		}
		b.WriteString("</table>\n")
	}
	b.WriteString(r.adviseHTML())
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	wide    = 720
	drawn   = 6 // runs of a case, at most
	rowHigh = 18
)

// timelines draws when the requests of each run came.
func timelines(runs []run) string {
	longest := time.Second
	for i := range runs {
		longest = max(longest, runs[i].Took)
	}
	var b strings.Builder
	for i := range runs[:min(len(runs), drawn)] {
		r := &runs[i]
		if r.sends() < 2 && r.Took < time.Second {
			continue
		}
		fmt.Fprintf(&b, `<svg width="%d" height="%d" role="img" aria-label="requests over time"><line x1="0" x2="%[1]d" y1="9" y2="9" stroke="currentColor" opacity=".25"/>`, wide, rowHigh)
		for n := range r.Arrivals {
			a := &r.Arrivals[n]
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="9" r="4" fill="currentColor"><title>request %d at %s</title></circle>`, 4+(wide-60)*a.At.Seconds()/longest.Seconds(), a.Number, short(a.At))
		}
		fmt.Fprintf(&b, `<text x="%d" y="13">%s</text></svg>`, wide-48, short(r.Took))
	}
	return b.String()
}

// drawLaw draws the waits before each retry, a dot for each, between the edges of the law.
func (r *Report) drawLaw() string {
	most := time.Duration(1)
	for _, of := range r.waits {
		for _, w := range of {
			most = max(most, w)
		}
	}
	var b strings.Builder
	at := func(d time.Duration) float64 { return 60 + (wide-80)*d.Seconds()/most.Seconds() }
	fmt.Fprintf(&b, `<svg width="%d" height="%d" role="img" aria-label="waits before each retry">`, wide, 34*len(r.Law.Ceilings)+6)
	for i, ceiling := range r.Law.Ceilings {
		y, from := 17+34*i, time.Duration(r.Law.Law.Edge(ceiling.Seconds())*float64(time.Second))
		fmt.Fprintf(&b, `<text x="0" y="%d">retry %d</text><rect x="%.1f" y="%d" width="%.1f" height="22" fill="currentColor" opacity=".13"><title>%s to %s</title></rect>`,
			y+4, i+1, at(from), y-11, max(2, at(ceiling)-at(from)), short(from), short(ceiling))
		for n, w := range r.waits[i] {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="2.5" fill="currentColor"><title>%s</title></circle>`, at(w), y-8+n*16/max(1, len(r.waits[i])-1), short(w))
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// name is what the client calls itself, or its program.
func (r *Report) name() string {
	if r.Agent != "" {
		return r.Agent
	}
	return r.Command[0]
}
