package report

import (
	"html/template"
	"io"
)

// pageTemplate is self-contained: no script, no network, no font.
var pageTemplate = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}: retry storm report</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;color:#1a202c;background:#f7fafc;margin:0}
main{max-width:60rem;margin:auto;padding:1rem}
section{background:#fff;border:1px solid #e2e8f0;border-radius:.5rem;padding:1rem;margin:1rem 0}
h1{font-size:1.4rem;margin:.5rem 0}h2{font-size:1.1rem;margin:0 0 .5rem}
svg{width:100%;height:auto;display:block}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #e2e8f0}th:first-child,td:first-child{text-align:left}
.metastable,.overloaded,.self-inflicted{color:#9b2c2c;font-weight:600}.recovered,.steady{color:#276749;font-weight:600}
.note{color:#744210;background:#fffff0;border-left:3px solid #d69e2e;padding:.3rem .7rem;margin:.5rem 0}
@media (prefers-color-scheme:dark){body{background:#1a202c;color:#e2e8f0}section{background:#fff;color:#1a202c}}
</style></head><body><main>
<h1>{{.Title}}</h1>{{with .About}}<p>{{.}}</p>{{end}}
<section><h2>Side by side</h2><div class="scroll"><table>
<thead><tr><th scope="col">policy</th><th scope="col">verdict</th><th scope="col">recovery</th><th scope="col">load</th><th scope="col">peak</th><th scope="col">good</th><th scope="col">wasted</th><th scope="col">p50</th><th scope="col">p99</th><th scope="col">queue</th></tr></thead><tbody>
{{range .Runs}}<tr><td>{{.Name}}</td><td class="{{.Verdict}}">{{.Verdict}}</td><td>{{.Recovery}}</td><td>{{.Load}}</td><td>{{.Peak}}</td><td>{{.Good}}</td><td>{{.Wasted}}</td><td>{{.P50}}</td><td>{{.P99}}</td><td>{{.Queue}}</td></tr>
{{end}}</tbody></table></div></section>
{{range .Runs}}<section><h2>{{.Name}}: {{.Headline}}</h2>
{{range .Notes}}<p class="note">{{.}}</p>{{end}}
{{range .Pictures}}{{.}}{{end}}
<p>Computed by the {{.Engine}} engine, seed {{.Seed}}.</p></section>
{{end}}</main></body></html>
`))

// Page is a report on one or more runs.
type Page struct {
	Title, About string
	Runs         []Run
}

// Run is one run on a [Page], its numbers with their units.
type Run struct {
	Name, Verdict, Headline                                     string
	Recovery, Load, Peak, Good, Wasted, P50, P99, Queue, Engine string
	Seed                                                        uint64
	Notes                                                       []string
	Chart                                                       Chart
}

// Pictures returns the panels of r's chart, one by one.
func (r Run) Pictures() (all []template.HTML) {
	for _, p := range r.Chart.Panels {
		all = append(all, template.HTML(r.Chart.panelSVG(p))) // escaped where it is made
	}
	return all
}

// WriteHTML writes p as a page that needs nothing else.
func (p *Page) WriteHTML(w io.Writer) error { return pageTemplate.Execute(w, p) }
