package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/storm"
	"github.com/forbear-go/forbear/storm/page"
)

// wrote turns the error of writing a report into an exit code.
func (s *sim) wrote(err error, code int) int {
	if err != nil {
		return s.std.Fail("sim: %v", err)
	}
	return code
}

// judged is the exit code of a result: 1 when it ended in trouble.
func judged(all ...*storm.Result) int {
	for _, r := range all {
		switch r.Summary.Verdict {
		case storm.Metastable, storm.Overloaded, storm.SelfInflicted:
			return cli.ExitFound
		}
	}
	return cli.ExitOK
}

func (s *sim) runOne(ctx context.Context, scenario storm.Scenario) int {
	r, err := storm.Run(ctx, scenario, storm.Options{Force: s.force})
	if err != nil {
		return s.refuse(err)
	}
	code := judged(r)
	switch s.output {
	case "json":
		return max(s.json(r), code)
	case "csv":
		return s.wrote(r.WriteCSV(s.std.Out), code)
	case "svg":
		return s.wrote(r.WriteSVG(s.std.Out), code)
	case "html":
		one := []storm.Compared{{Variant: storm.Variant{Name: "as-is", Title: "as configured"}, Result: r}}
		return s.wrote(storm.WriteHTML(s.std.Out, scenario.Name, scenario.Description, one), code)
	}
	return s.wrote(r.WriteText(s.std.Out), code)
}

func (s *sim) compare(ctx context.Context, scenario storm.Scenario) int {
	all, err := storm.Compare(ctx, scenario, storm.Options{Force: s.force}, s.progress("compare"))
	if err != nil {
		return s.refuse(err)
	}
	switch s.output {
	case "json":
		return s.json(all)
	case "html":
		return s.wrote(storm.WriteHTML(s.std.Out, scenario.Name, scenario.Description, all), cli.ExitOK)
	case "text":
		return s.wrote(storm.WriteComparison(s.std.Out, all), cli.ExitOK)
	}
	return s.std.Fail("sim compare: output %s is for one run: want text, json or html", s.output)
}

func (s *sim) sweep(ctx context.Context, scenario storm.Scenario) int {
	bounds := storm.SweepBounds{
		LoadFrom: s.loadFrom, LoadTo: s.loadTo, Loads: s.loads, Triggers: s.triggers, Longest: storm.Duration(s.longest),
	}
	w, err := storm.RunSweep(ctx, scenario, bounds, storm.Options{Force: s.force}, s.progress("sweep"))
	if err != nil {
		return s.refuse(err)
	}
	return s.draw("sweep", w)
}

func (s *sim) curve(ctx context.Context, scenario storm.Scenario) int {
	c, err := storm.RunCurve(ctx, scenario, s.points, storm.Options{Force: s.force}, s.progress("curve"))
	if err != nil {
		return s.refuse(err)
	}
	return s.draw("curve", c)
}

// drawing is what many runs add up to.
type drawing interface {
	WriteCSV(w io.Writer) error
	WriteSVG(w io.Writer) error
	WriteText(w io.Writer) error
}

// draw writes what a verb has found.
func (s *sim) draw(verb string, d drawing) int {
	switch s.output {
	case "json":
		return s.json(d)
	case "csv":
		return s.wrote(d.WriteCSV(s.std.Out), cli.ExitOK)
	case "svg":
		return s.wrote(d.WriteSVG(s.std.Out), cli.ExitOK)
	case "text":
		return s.wrote(d.WriteText(s.std.Out), cli.ExitOK)
	}
	return s.std.Fail("sim %s: output %s is not there: want text, json, csv or svg", verb, s.output)
}

func (s *sim) least(ctx context.Context, scenario storm.Scenario) int {
	t, err := storm.LeastTrigger(ctx, scenario, storm.Options{Force: s.force}, s.longest)
	if err != nil {
		return s.refuse(err)
	}
	code := cli.ExitOK
	if t.Sticks {
		code = cli.ExitFound
	}
	if s.output == "json" {
		return max(s.json(t), code)
	}
	if !t.Sticks {
		fmt.Fprintf(s.std.Out, "%s: no fault of up to %v sticks (%s engine, %d runs)\n", scenario.Name, t.Longest, t.Engine, t.Runs)
		return code
	}
	fmt.Fprintf(s.std.Out, "%s: a first fault of %.2f s or more sticks (to within %v; %s engine, %d runs)\n",
		scenario.Name, t.Least.Seconds(), t.Precision, t.Engine, t.Runs)
	return code
}

// serve shows the page until ctx ends.
func (s *sim) serve(ctx context.Context) int {
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return s.std.Fail("sim serve: %v", err)
	}
	srv := &http.Server{
		Handler:           page.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	fmt.Fprintf(s.std.Out, "The retry-storm simulator is at http://%s/\n", l.Addr())
	context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = srv.Shutdown(limited)
	})
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return s.std.Fail("sim serve: %v", err)
	}
	return cli.ExitOK
}
