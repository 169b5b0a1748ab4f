package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"html"
	"io"
)

// pageHead is self-contained: no script, no network, no font. A page can be mailed,
// or kept beside an incident, and looks the same in ten years.
//
// The page is written without html/template, whose calls of methods by their names
// make the linker keep every exported method of every type in a binary: ten megabytes
// of forbear's.
//
//go:embed page_head.html
var pageHead string

// Words explains the words and colors of a report, as a section of HTML. The interactive
// page has the same one.
//
//go:embed words.html
var Words string

// Page is a report on one or more runs. All of its texts are escaped.
type Page struct {
	Title, About string
	// Columns are the headings of the table, after the name and the verdict of a run.
	Columns []string
	Runs    []Run
}

// Run is one run on a [Page]. Verdict is the class by which the style sheet colors it,
// too; Cells are its row in the table, with their units.
type Run struct {
	Name, Verdict, Headline, Origin string
	Cells, Notes                    []string
	Chart                           Chart
}

// WriteHTML writes p as a page that needs nothing else.
func (p *Page) WriteHTML(w io.Writer) error {
	b := bufio.NewWriter(w) // keeps the first error until the flush
	title := html.EscapeString(p.Title)
	fmt.Fprintf(b, `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s: retry storm report</title>
%s<h1>%s</h1>`, title, pageHead, title)
	if p.About != "" {
		fmt.Fprintf(b, `<p>%s</p>`, html.EscapeString(p.About))
	}
	p.writeTable(b)
	for i := range p.Runs {
		p.Runs[i].write(b)
	}
	b.WriteString(Words)
	b.WriteString("</main></body></html>\n")
	return b.Flush()
}

// writeTable writes the runs side by side.
func (p *Page) writeTable(b *bufio.Writer) {
	b.WriteString("\n<section><h2>Side by side</h2><div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">verdict</th>")
	for _, c := range p.Columns {
		fmt.Fprintf(b, `<th scope="col">%s</th>`, html.EscapeString(c))
	}
	b.WriteString("</tr></thead><tbody>\n")
	for i := range p.Runs {
		r := &p.Runs[i]
		verdict := html.EscapeString(r.Verdict)
		fmt.Fprintf(b, `<tr><td>%s</td><td class="%s">%s</td>`, html.EscapeString(r.Name), verdict, verdict)
		for _, c := range r.Cells {
			fmt.Fprintf(b, `<td>%s</td>`, html.EscapeString(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div></section>\n")
}

// write writes the section of r: what is to be known about it, and its pictures.
func (r *Run) write(b *bufio.Writer) {
	fmt.Fprintf(b, "<section><h2>%s: %s</h2>\n", html.EscapeString(r.Name), html.EscapeString(r.Headline))
	for _, n := range r.Notes {
		fmt.Fprintf(b, `<p class="note">%s</p>`, html.EscapeString(n))
	}
	b.WriteByte('\n')
	for _, p := range r.Chart.Panels {
		b.WriteString(r.Chart.panelSVG(p)) // escaped where it is made
	}
	fmt.Fprintf(b, "\n<p>Simulated: %s.</p></section>\n", html.EscapeString(r.Origin))
}
