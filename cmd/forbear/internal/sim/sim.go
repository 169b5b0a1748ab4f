package sim

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/sim/simfile"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/storm"
)

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "sim",
		Summary: "see the retry storm before it happens",
		Usage:   "run|compare|sweep|curve|least|list|show|schema|serve [FLAGS] [FILE or NAME]",
		About: `
Sim simulates fleets of clients, the services that they call and the faults
between them, with forbear's own decisions, budgets and breakers.

  run      one scenario
  compare  no backoff, backoff, jitter, budget, breaker, one layer: side by side
  sweep    a map of loads and lengths of the first fault
  curve    what ends well, by the share of attempts that the first fault fails
  least    the shortest first fault after which the trouble stays
  list     the scenarios that come with forbear
  show     one of them, as a file to start from
  schema   the JSON Schema of scenario files
  serve    the page: drag the load towards 100 M requests a second and watch

A scenario is a YAML file, - for standard input, or the name of one that comes
with forbear.
Exit code 1 means that a run ended in trouble: metastable, overloaded or
self-inflicted.`,
		Examples: `
forbear sim run metastable
forbear sim compare hundred-million -o html > storm.html
forbear sim sweep metastable --engine cohort -o svg > map.svg
forbear sim run partial --policy policy.yaml#payments
forbear sim show payment-fleet-200 > mine.yaml && forbear sim run mine.yaml
forbear sim serve
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		s := newSim(c, std)
		return s.run(ctx, args)
	}
	return c
}

// sim holds the flags of all verbs.
type sim struct {
	c     *cli.Command
	std   *cli.Streams
	flags *flag.FlagSet

	output, engine, listen  string
	seed                    uint64
	force                   bool
	duration, step, longest time.Duration
	loadFrom, loadTo        float64
	loads, triggers, points int
	policy                  string
}

func newSim(c *cli.Command, std *cli.Streams) *sim {
	s := &sim{c: c, std: std, flags: c.Flags()}
	f := s.flags
	f.StringVar(&s.output, "o", "text", "output `format`: text, json, csv, svg or html")
	f.StringVar(&s.engine, "engine", "", "`engine` instead of the scenario's: auto, exact or cohort")
	f.Uint64Var(&s.seed, "seed", 0, "`seed` instead of the scenario's")
	f.DurationVar(&s.duration, "duration", 0, "simulated `time` instead of the scenario's")
	f.DurationVar(&s.step, "step", 0, "time `step` of the cohort engine instead of the scenario's")
	f.BoolVar(&s.force, "force", false, "run what would need more than 2 GiB or 10 minutes")
	f.StringVar(&s.policy, "policy", "", "policy of all fleets, from a policy file: `FILE#DEPENDENCY`")
	f.Float64Var(&s.loadFrom, "load-from", 0.5, "sweep: least load, as a `factor`")
	f.Float64Var(&s.loadTo, "load-to", 1.5, "sweep: greatest load, as a `factor`")
	f.IntVar(&s.loads, "loads", 12, "sweep: `number` of loads")
	f.IntVar(&s.triggers, "triggers", 12, "sweep: `number` of fault lengths")
	f.IntVar(&s.points, "points", 20, "curve: `number` of shares")
	f.DurationVar(&s.longest, "longest", 0, "sweep, least: longest fault (default 20s, 1m)")
	f.StringVar(&s.listen, "listen", "127.0.0.1:8090", "serve: `address` to listen on")
	return s
}

var simVerbs = []string{"run", "compare", "sweep", "curve", "least", "list", "show", "schema", "serve"}

func (s *sim) run(ctx context.Context, args []string) int {
	verb, operand, code, done := s.parse(args)
	if done {
		return code
	}
	switch verb {
	case "list":
		return s.list()
	case "schema":
		s.std.Out.Write(storm.Schema())
		return cli.ExitOK
	case "show":
		return s.show(operand)
	case "serve":
		return s.serve(ctx)
	}
	scenario, err := s.load(operand)
	if err != nil {
		return s.refuse(err)
	}
	switch verb {
	case "run":
		return s.runOne(ctx, scenario)
	case "compare":
		return s.compare(ctx, scenario)
	case "sweep":
		return s.sweep(ctx, scenario)
	case "curve":
		return s.curve(ctx, scenario)
	default:
		return s.least(ctx, scenario)
	}
}

// parse takes flags and operands in any order.
func (s *sim) parse(args []string) (verb, operand string, code int, done bool) {
	var operands []string
	for len(args) > 0 {
		if code, done = s.c.Parse(s.std, s.flags, args, len(args)); done {
			return "", "", code, true
		}
		if args = s.flags.Args(); len(args) > 0 {
			operands = append(operands, args[0])
			args = args[1:]
		}
	}
	if len(operands) == 0 {
		return "", "", s.std.Fail("sim: say what to do: %s (see forbear sim --help)", strings.Join(simVerbs, ", ")), true
	}
	verb = operands[0]
	known := false
	for _, v := range simVerbs {
		known = known || v == verb
	}
	wants := map[string]int{"run": 1, "compare": 1, "sweep": 1, "curve": 1, "least": 1, "show": 1}[verb]
	switch near, ok := nearest.Of(verb, simVerbs); {
	case !known && ok:
		return "", "", s.std.Fail("sim: unknown verb %q: did you mean %s?", verb, near), true
	case !known:
		return "", "", s.std.Fail("sim: unknown verb %q: want %s", verb, strings.Join(simVerbs, ", ")), true
	case len(operands)-1 > wants:
		return "", "", s.std.Fail("sim %s: unexpected argument %q", verb, operands[1+wants]), true
	case len(operands)-1 < wants:
		return "", "", s.std.Fail("sim %s: name a scenario file, or one of forbear sim list", verb), true
	}
	switch s.output {
	case "text", "json", "csv", "svg", "html":
	default:
		return "", "", s.std.Fail("sim: output %q is unknown: want text, json, csv, svg or html", s.output), true
	}
	if wants == 1 {
		operand = operands[1]
	}
	return verb, operand, cli.ExitOK, false
}

// load reads the scenario and lays the flags over it.
func (s *sim) load(operand string) (storm.Scenario, error) {
	scenario, ok := storm.FindNamed(operand)
	if !ok {
		var err error
		if scenario, err = s.read(operand); err != nil {
			return scenario, err
		}
	}
	if s.engine != "" {
		scenario.Engine = storm.EngineKind(s.engine)
	}
	if s.seed != 0 {
		scenario.Seed = s.seed
	}
	if s.duration != 0 {
		scenario.Duration = storm.Duration(s.duration)
	}
	if s.step != 0 {
		scenario.Step = storm.Duration(s.step)
	}
	if s.policy != "" {
		p, err := simfile.Policy(".", s.policy)
		if err != nil {
			return scenario, err
		}
		for i := range scenario.Fleets {
			scenario.Fleets[i].Client.Policy = &p
			scenario.Fleets[i].Client.Baseline = storm.Baseline{}
		}
	}
	return scenario, scenario.Validate()
}

func (s *sim) read(operand string) (storm.Scenario, error) {
	if operand == "-" {
		data, err := io.ReadAll(io.LimitReader(s.std.In, 2<<20))
		if err != nil {
			return storm.Scenario{}, err
		}
		return simfile.Parse("standard input", data)
	}
	scenario, err := simfile.Load(operand)
	if errors.Is(err, os.ErrNotExist) {
		var names []string
		for _, n := range storm.Named() {
			names = append(names, n.Name)
		}
		if near, ok := nearest.Of(operand, names); ok {
			return scenario, fmt.Errorf("%w, and no scenario of that name: did you mean %s?", err, near)
		}
		return scenario, fmt.Errorf("%w, and no scenario of that name: see forbear sim list", err)
	}
	return scenario, err
}

// refuse reports an error, one line for each mistake.
func (s *sim) refuse(err error) int {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			s.std.Fail("%v", e)
		}
		return cli.ExitUsage
	}
	if large, ok := errors.AsType[*storm.TooLargeError](err); ok {
		return s.std.Fail("sim: %v (--force)", large)
	}
	return s.std.Fail("sim: %v", err)
}

func (s *sim) list() int {
	if s.output == "json" {
		return s.json(storm.Named())
	}
	for _, n := range storm.Named() {
		fmt.Fprintf(s.std.Out, "%-22s %s\n", n.Name, n.Description)
	}
	return cli.ExitOK
}

// show writes a named scenario as JSON, which is YAML as well.
func (s *sim) show(name string) int {
	scenario, ok := storm.FindNamed(name)
	if !ok {
		return s.std.Fail("sim show: no scenario is called %q: see forbear sim list", name)
	}
	return s.json(scenario)
}

func (s *sim) json(v any) int {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return s.std.Fail("sim: %v", err)
	}
	if _, err := s.std.Out.Write(append(b, '\n')); err != nil {
		return s.std.Fail("sim: %v", err)
	}
	return cli.ExitOK
}

// progress returns a function that shows the progress of a long work on a
// terminal, or nil.
func (s *sim) progress(what string) func(done, of int) {
	f, ok := s.std.Err.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	start := time.Now()
	return func(done, of int) {
		left := time.Duration(float64(time.Since(start)) / float64(done) * float64(of-done)).Round(time.Second)
		fmt.Fprintf(f, "\r%s: %d of %d, %v left \x1b[K", what, done, of, left)
		if done == of {
			fmt.Fprint(f, "\r\x1b[K")
		}
	}
}
