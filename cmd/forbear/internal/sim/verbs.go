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
	"github.com/forbear-go/forbear/cmd/forbear/internal/sim/simfile"
	"github.com/forbear-go/forbear/storm"
	"github.com/forbear-go/forbear/storm/page"
)

// list lists the scenarios that come with forbear, with a line about each.
func (s *sim) list(context.Context, string) int {
	if s.output == "json" {
		return s.json(storm.Named())
	}
	for _, n := range storm.Named() {
		fmt.Fprintf(s.std.Out, "%-22s %s\n", n.Name, n.Description)
	}
	return cli.ExitOK
}

// show writes a named scenario as JSON, which is YAML as well: it can be
// saved, changed and run.
func (s *sim) show(_ context.Context, name string) int {
	scenario, ok := storm.FindNamed(name)
	if !ok {
		return s.std.Fail("sim show: no scenario is called %q: forbear sim list shows them", name)
	}
	return s.json(scenario)
}

// schema writes the JSON Schema of scenario files, for editors. It comes
// from storm, whose types define the format.
func (s *sim) schema(context.Context, string) int {
	_, err := s.std.Out.Write(storm.Schema())
	return s.wrote(err, cli.ExitOK)
}

// json writes v as one indented document.
func (s *sim) json(v any) int {
	return s.wrote(cli.WriteJSON(s.std.Out, v), cli.ExitOK)
}

// wrote turns the error of writing a report into an exit code. A closed pipe
// is an error too: a cut-off report must not pass for a whole one.
func (s *sim) wrote(err error, code int) int {
	if err != nil {
		return s.std.Fail("sim: %v", err)
	}
	return code
}

// judged is the exit code of a result: 1 when it ended in trouble, so that a
// pipeline can hold a policy to a scenario.
func judged(r *storm.Result) int {
	// The other verdicts end well: the system recovers when the fault
	// is over.
	switch r.Summary.Verdict {
	case storm.Metastable, storm.Overloaded, storm.Limited, storm.SelfInflicted:
		return cli.ExitFound
	}
	return cli.ExitOK
}

// runOne simulates one scenario and writes its course. It is the one verb
// whose exit code speaks of the scenario's end.
func (s *sim) runOne(ctx context.Context, scenario storm.Scenario) int {
	r, err := storm.Run(ctx, scenario, storm.Options{Force: s.force})
	if err != nil {
		return s.refuse(err)
	}
	if s.output == "html" {
		// The page has a column for each variant; a single run is one of
		// them.
		one := []storm.Compared{{Variant: storm.Variant{Name: "as-is", Title: "as configured"}, Result: r}}
		return s.wrote(storm.WriteHTML(s.std.Out, scenario.Name, scenario.Description, one), judged(r))
	}
	return max(s.draw(r), judged(r))
}

// compare runs the scenario under each kind of retrying, side by side. That
// some of them end in trouble is the point, and no failure of the command.
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
	default:
		return s.wrote(storm.WriteComparison(s.std.Out, all), cli.ExitOK)
	}
}

// sweep maps where the trouble outlasts the fault, by the load and the
// length of the fault. Each cell of the map is a run of its own.
func (s *sim) sweep(ctx context.Context, scenario storm.Scenario) int {
	bounds := storm.SweepBounds{
		LoadFrom: s.loadFrom, LoadTo: s.loadTo, Loads: s.loads, Triggers: s.triggers, Longest: storm.Duration(s.longest),
	}
	w, err := storm.RunSweep(ctx, scenario, bounds, storm.Options{Force: s.force}, s.progress("sweep"))
	if err != nil {
		return s.refuse(err)
	}
	return s.draw(w)
}

// curve shows what ends well, by the share of attempts that fail. Partial
// failures are where a breaker can do harm.
func (s *sim) curve(ctx context.Context, scenario storm.Scenario) int {
	c, err := storm.RunCurve(ctx, scenario, s.points, storm.Options{Force: s.force}, s.progress("curve"))
	if err != nil {
		return s.refuse(err)
	}
	return s.draw(c)
}

// drawing is the result of one run or of many: a course, a map or a curve.
type drawing interface {
	WriteCSV(w io.Writer) error
	WriteSVG(w io.Writer) error
	WriteText(w io.Writer) error
}

// draw writes what a verb has found. Its exit code does not depend on the
// findings: trouble at the edge of a map is what the map is for.
func (s *sim) draw(d drawing) int {
	if s.output == "json" {
		return s.json(d)
	}
	write := map[string]func(io.Writer) error{"csv": d.WriteCSV, "svg": d.WriteSVG, "text": d.WriteText}[s.output]
	return s.wrote(write(s.std.Out), cli.ExitOK)
}

// least searches for the shortest fault after which the trouble stays. Exit code 1
// says that there is one, for any seed.
func (s *sim) least(ctx context.Context, scenario storm.Scenario) int {
	t, err := storm.LeastTrigger(ctx, scenario, storm.Options{Force: s.force}, s.longest, s.progress("least: seed"))
	if err != nil {
		return s.refuse(err)
	}
	code := cli.ExitOK
	if t.Stuck > 0 {
		code = cli.ExitFound
	}
	if s.output == "json" {
		return max(s.json(t), code)
	}
	of := fmt.Sprintf("%d seeds, %d runs", t.Seeds, t.Runs)
	if t.Scale > 1 {
		of += fmt.Sprintf(", 1 of every %.3g requests", t.Scale)
	}
	switch {
	case t.Stuck == 0: // the good result
		fmt.Fprintf(s.std.Out, "%s: recovers from every first fault of up to %s (%s)\n", scenario.Name, t.Longest.Brief(), of)
	case !t.Sticks:
		fmt.Fprintf(s.std.Out, "%s: %d of %d runs do not recover from a first fault of %s; the shortest such fault was %.2f s (%s)\n",
			scenario.Name, t.Stuck, t.Seeds, t.Longest.Brief(), t.Shortest.Seconds(), of)
	default:
		to := "to"
		if t.Open {
			to = "to more than"
		}
		fmt.Fprintf(s.std.Out, "%s: half of the runs do not recover from a first fault of %.2f s (95 %% interval: %.2f %s %.2f s); the shortest such fault was %.2f s (%s)\n",
			scenario.Name, t.Least.Seconds(), t.Interval[0].Seconds(), to, t.Interval[1].Seconds(), t.Shortest.Seconds(), of)
	}
	return code
}

// progress returns a function that shows the progress of long work on a
// terminal, or nil elsewhere. The time left is estimated from the runs so
// far, and rough: runs near the edge of a map take longer.
func (s *sim) progress(what string) func(done, of int) {
	if !cli.Terminal(s.std.Err) {
		return nil
	}
	start := time.Now()
	return func(done, of int) {
		// done is at least 1 here, since progress is reported after each
		// run.
		left := time.Duration(float64(time.Since(start)) / float64(done) * float64(of-done)).Round(time.Second)
		fmt.Fprintf(s.std.Err, "\r%s: %d of %d, %v left \x1b[K", what, done, of, left)
		if done == of {
			fmt.Fprint(s.std.Err, "\r\x1b[K")
		}
	}
}

// serve shows the page until ctx ends. It simulates at the request of any
// page that reaches it: its default address is therefore loopback, and its
// timeouts are short.
func (s *sim) serve(ctx context.Context, _ string) int {
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return s.std.Fail("sim serve: %v", err)
	}
	srv := &http.Server{
		Handler:           page.Handler(simfile.Policies),
		ReadHeaderTimeout: 5 * time.Second,
		// A scenario is a few kilobytes: a slow sender has no business
		// here.
		ReadTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute,
	}
	// The address is printed after listening, since port 0 picks one.
	fmt.Fprintf(s.std.Out, "The retry-storm simulator is at http://%s/\n", l.Addr())
	// A page that is being sent may finish, within two seconds.
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
