package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/edge/metric"
)

// Metrics returns the page of all metrics. Those of the library come from the table
// that promretry and otelretry register; those of the binary are read from the
// source in folders, where they are made.
func Metrics(folders ...string) (string, error) {
	p := begin("Metrics", "the tables that they are registered from")
	p.line("`promretry` registers the library's metrics with Prometheus, `otelretry` with OpenTelemetry. `forbear serve` has all\nmetrics of this page at `/metrics`. See also [the guide](../guides/metrics-and-traces.md) and [the alerts](../alerts/README.md).\n")
	p.heading(2, "Calls and retries")
	var rows [][]string
	for _, m := range metric.Table {
		rows = append(rows, ofMetric(m))
	}
	p.metrics(rows)
	p.heading(2, "State of a dependency")
	rows = nil
	for _, g := range metric.Gauges {
		rows = append(rows, ofMetric(g.Metric))
	}
	p.metrics(rows)
	p.heading(2, "Idempotency records")
	rows = nil
	for _, g := range metric.KeyGauges {
		rows = append(rows, ofMetric(g.Metric))
	}
	p.metrics(rows)
	p.heading(2, "Consumers of events")
	rows = nil
	for _, g := range metric.StalledGauges {
		rows = append(rows, ofMetric(g.Metric))
	}
	p.metrics(rows)
	p.heading(2, "Only in forbear serve")
	rows = nil
	for _, folder := range folders {
		more, err := inSource(folder)
		if err != nil {
			return "", err
		}
		rows = append(rows, more...)
	}
	p.metrics(rows)
	p.line("It also exports `go_*` and `process_*`.")
	return p.String(), nil
}

func (p *page) metrics(rows [][]string) {
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	p.table([]string{"metric", "type", "labels", "meaning"}, rows)
}

func ofMetric(m metric.Metric) []string {
	kind := [...]string{metric.KindCounter: "counter", metric.KindHistogram: "histogram", metric.KindGauge: "gauge"}[m.Kind]
	if strings.HasSuffix(m.Name, "_total") {
		kind = "counter"
	}
	return []string{tick(m.Name), kind, labels(m.Labels), plain(m.Help)}
}

func labels(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, tick(name))
	}
	return strings.Join(all, ", ")
}

// inSource finds prometheus.NewDesc(...) and prometheus.SomeOpts{...} in the Go
// files of a folder.
func inSource(folder string) (rows [][]string, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			made := called(call.Fun)
			if made == "NewDesc" && len(call.Args) == 4 {
				rows = append(rows, row(text(call.Args[0]), "", text(call.Args[1]), strs(call.Args[2])))
			}
			opts, ok := call.Args[0].(*ast.CompositeLit)
			if !ok || !strings.HasSuffix(called(opts.Type), "Opts") || !strings.HasPrefix(made, "New") {
				return true
			}
			fields := map[string]string{}
			for _, e := range opts.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					fields[kv.Key.(*ast.Ident).Name] = text(kv.Value)
				}
			}
			if fields["Name"] != "" {
				var names []string
				if len(call.Args) > 1 {
					names = strs(call.Args[1])
				}
				rows = append(rows, row(fields["Name"], called(opts.Type), fields["Help"], names))
			}
			return true
		})
	}
	return rows, nil
}

// row is a metric whose type is told by its options, or else by its name.
func row(name, opts, help string, names []string) []string {
	kind := "gauge"
	switch {
	case strings.HasPrefix(opts, "Histogram"):
		kind = "histogram"
	case strings.HasPrefix(opts, "Counter") || strings.HasSuffix(name, "_total"):
		kind = "counter"
	}
	return []string{tick(name), kind, labels(names), plain(help)}
}

// called returns the name behind the package's, as NewDesc of prometheus.NewDesc.
func called(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

// text returns the value of string literals that are added up.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}

func strs(e ast.Expr) (all []string) {
	if list, ok := e.(*ast.CompositeLit); ok {
		for _, e := range list.Elts {
			all = append(all, text(e))
		}
	}
	return all
}
