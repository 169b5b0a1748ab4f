package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/forbear-go/forbear/cmd/forbear/internal/sim/simfile"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/storm"
)

// maxInput bounds what is read of standard input, in bytes. It is above
// simfile's bound, so that a longer scenario is refused and not silently cut
// off.
const maxInput = 2 << 20

// load reads the scenario, from a file or by the name of one that comes with
// forbear, and lays the flags over it. The result is checked as a whole: a
// flag may break a scenario that is sound by itself.
func (s *sim) load(operand string) (storm.Scenario, error) {
	scenario, ok := storm.FindNamed(operand)
	if !ok {
		var err error
		if scenario, err = s.read(operand); err != nil {
			return scenario, err
		}
	}
	if s.from != "" {
		m, err := simfile.LoadMeasured(s.from)
		if err != nil {
			return scenario, err
		}
		scenario = m.Over(scenario)
	}
	// A zero value means that the flag was not given.
	scenario.Engine = cmp.Or(storm.EngineKind(s.engine), scenario.Engine)
	scenario.Seed = cmp.Or(s.seed, scenario.Seed)
	scenario.Duration = cmp.Or(storm.Duration(s.duration), scenario.Duration)
	// The policy replaces every fleet's: a comparison of policies is what
	// sim curve and sim run are asked for.
	if s.policy != "" {
		p, err := simfile.Policy(".", s.policy)
		if err != nil {
			return scenario, err
		}
		scenario = scenario.WithPolicy(p)
	}
	return scenario, scenario.Validate()
}

// read reads a scenario from a file or, for "-", from standard input. A name
// that is neither a file nor a scenario gets the nearest scenario as a hint.
//
// A file wins over nothing here: names of scenarios were tried first, so
// that a stray file cannot change what "forbear sim run metastable" means.
func (s *sim) read(operand string) (storm.Scenario, error) {
	if operand == "-" {
		data, err := io.ReadAll(io.LimitReader(s.std.In, maxInput))
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
		// The error of the missing file comes first: the operand may have
		// been meant as one.
		hint := nearest.Hint(operand, names, ": see forbear sim list")
		return scenario, fmt.Errorf("%w, and no built-in scenario has that name%s", err, hint)
	}
	return scenario, err
}
