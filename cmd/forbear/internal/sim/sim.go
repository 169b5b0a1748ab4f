// Package sim is the command sim: the retry-storm simulator of package storm on
// the command line. It reads scenarios, lays flags over them, and writes results
// in the formats that storm knows. It decides nothing itself.
package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/storm"
)

// Command returns the command sim.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "sim",
		Summary: "see the retry storm before it happens",
		Usage:   strings.Join(verbNames(), "|") + " [FLAGS] [FILE or NAME]",
		About: `
Sim simulates clients, services and faults with forbear's own decisions, budgets
and breakers.

  run      run one scenario
  compare  no backoff, backoff, jitter, budget, breaker, one layer: side by side
  sweep    map the outcome over the load and the length of the first fault
  curve    successful calls, by the share of attempts that the first fault fails
  least    find the shortest first fault that the service does not recover from
  list     list the built-in scenarios
  show     print one of them, as a file to start from
  schema   print the JSON Schema of scenario files
  serve    serve the interactive page

A scenario is a YAML file, - for standard input, or a built-in scenario.

--from lays measurements over it, as Prometheus has them: a CSV file whose first line
names its columns, time (RFC 3339 or seconds) and some of rate (requests per second),
p50, p90, p95 and p99 (seconds). The rate replaces the load of the first fleet. The
latencies replace the service times of the first service: each is the median over the
rows, weighted by the rate. Without a duration the scenario lasts as long as the file.

Exit code 1: a run ended metastable, overloaded, limited or self-inflicted.`,
		Examples: `
forbear sim run metastable
forbear sim compare hundred-million -o html > storm.html
forbear sim sweep metastable -o svg > map.svg
forbear sim run partial --policy policy.yaml#payments
forbear sim run mine.yaml --from measured.csv
forbear sim show payment-fleet-200 > mine.yaml && forbear sim run mine.yaml
forbear sim serve
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		s := &sim{std: std}
		s.register(f)
		operands, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		// Checked before any scenario is loaded, so that the message is
		// about the command line.
		v, err := s.check(operands)
		if err == nil {
			err = ofVerb(f, v.name)
		}
		if err != nil {
			return std.Fail("%v", err)
		}
		// A verb takes at most one operand; check has made sure of that.
		return v.do(s, ctx, strings.Join(operands[1:], "")) // one or none
	}
	return c
}

// sim is one run of the command, with the flags of all verbs. One flag set
// serves all of them, because flags may stand before the verb.
type sim struct {
	std *cli.Streams

	output string // format of the result
	listen string // of serve

	// What is laid over the scenario.
	engine   string
	seed     uint64
	duration time.Duration
	policy   string // FILE#DEPENDENCY
	from     string // FILE.csv
	force    bool   // run what is over storm's bounds

	// The bounds of sweep, curve and least.
	loadFrom, loadTo        float64
	loads, triggers, points int
	longest                 time.Duration
}

// register registers the flags of all verbs in one set, so that flags may
// stand before the verb too. A zero value leaves the scenario's own.
func (s *sim) register(f *flag.FlagSet) {
	f.StringVar(&s.output, "o", "text", "output `format`: text, json, csv, svg or html")
	f.StringVar(&s.engine, "engine", "", "`engine`, replacing the scenario's: auto or exact")
	f.Uint64Var(&s.seed, "seed", 0, "`seed`, replacing the scenario's")
	f.DurationVar(&s.duration, "duration", 0, "simulated `time`, replacing the scenario's")
	f.BoolVar(&s.force, "force", false, "allow runs over 2 GiB or 10 minutes")
	f.StringVar(&s.policy, "policy", "", "policy of all fleets: `FILE#DEPENDENCY`")
	f.StringVar(&s.from, "from", "", "measured load and latencies, laid over the scenario: `FILE.csv`")
	f.Float64Var(&s.loadFrom, "load-from", 0.5, "sweep: lowest load, as a `factor`")
	f.Float64Var(&s.loadTo, "load-to", 1.5, "sweep: highest load, as a `factor`")
	f.IntVar(&s.loads, "loads", 11, "sweep: `number` of loads")
	f.IntVar(&s.triggers, "triggers", 12, "sweep: `number` of fault lengths")
	f.IntVar(&s.points, "points", 20, "curve: `number` of shares")
	f.DurationVar(&s.longest, "longest", 0, "sweep, least: longest fault (default 20s, 1m)")
	f.StringVar(&s.listen, "listen", "127.0.0.1:8090", "serve: `address` to listen on")
}

// verb is one thing that sim does. operand says that it needs a scenario. do
// returns the exit code.
type verb struct {
	name    string
	operand bool
	formats []string // that it writes
	do      func(s *sim, ctx context.Context, operand string) int
}

var (
	everyFormat = []string{"text", "json", "csv", "svg", "html"}
	drawn       = everyFormat[:4]                  // of many runs in one picture
	sideBySide  = []string{"text", "json", "html"} // csv and svg show one run
	plain       = []string{"text", "json"}
)

// verbs are in the order in which messages list them.
var verbs = []verb{
	{"run", true, everyFormat, on((*sim).runOne)},
	{"compare", true, sideBySide, on((*sim).compare)},
	{"sweep", true, drawn, on((*sim).sweep)},
	{"curve", true, drawn, on((*sim).curve)},
	{"least", true, plain, on((*sim).least)},
	{"list", false, plain, (*sim).list},
	{"show", true, plain, (*sim).show},
	{"schema", false, plain, (*sim).schema},
	{"serve", false, plain[:1], (*sim).serve},
}

func verbNames() (names []string) {
	for _, v := range verbs {
		names = append(names, v.name)
	}
	return names
}

// on makes a verb of a function that works on a scenario: it loads and
// checks the scenario first, in one place for all of them.
func on(do func(*sim, context.Context, storm.Scenario) int) func(*sim, context.Context, string) int {
	return func(s *sim, ctx context.Context, operand string) int {
		scenario, err := s.load(operand)
		if err != nil {
			return s.refuse(err)
		}
		return do(s, ctx, scenario)
	}
}

// check says what is wrong with the command line, or returns the verb.
// Nothing is simulated before that: some runs take minutes, and a misspelt
// output format must not show at their end.
func (s *sim) check(operands []string) (v verb, err error) {
	if len(operands) == 0 {
		return v, fmt.Errorf("sim: want one of %s (see forbear sim --help)", strings.Join(verbNames(), ", "))
	}
	name := operands[0]
	// The verb is an operand too, and one that there is.
	wants := 1
	if v = verbs[slices.Index(verbNames(), name)]; v.operand {
		wants = 2
	}
	switch {
	case len(operands) > wants:
		return v, fmt.Errorf("sim %s: unexpected argument %q", name, operands[wants])
	case len(operands) < wants:
		return v, fmt.Errorf("sim %s: name a scenario file, or a scenario of forbear sim list", name)
	case !slices.Contains(v.formats, s.output):
		return v, fmt.Errorf("sim %s: output %q is unknown: want %s", name, s.output, cli.OneOf(v.formats))
	}
	return v, nil
}

// ofVerb returns an error for a flag that was given and belongs to other verbs: its usage
// begins with theirs. A number or a time of 0 would be read as the default.
func ofVerb(f *flag.FlagSet, name string) (err error) {
	f.Visit(func(g *flag.Flag) {
		verbs, _, some := strings.Cut(g.Usage, ": ")
		of := strings.Split(verbs, ", ")
		switch {
		case err != nil || !some || !slices.Contains(verbNames(), of[0]):
		case !slices.Contains(of, name):
			err = fmt.Errorf("sim %s: --%s belongs to sim %s", name, g.Name, strings.Join(of, " and sim "))
		case g.Value.String() == "0" || g.Value.String() == "0s":
			err = fmt.Errorf("sim %s: --%s is 0: want more", name, g.Name)
		}
	})
	return err
}

// refuse reports an error, one line for each mistake, so that a scenario
// with several is corrected in one go. Exit code 2: nothing was simulated.
func (s *sim) refuse(err error) int {
	// errors.Join gives a list, and each of its members names its field.
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			s.std.Fail("%v", e)
		}
		return cli.ExitUsage
	}
	// Only this refusal has a way around it, which the message names.
	if large, ok := errors.AsType[*storm.TooLargeError](err); ok {
		return s.std.Fail("sim: %v: --force runs it all the same", large)
	}
	return s.std.Fail("sim: %v", err)
}
