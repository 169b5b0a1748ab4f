//forbear:plain virtual time; httpretry and forbear are raced in packages of their own

package truth

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/sim/simfile"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storm"
)

// situation is a scenario of testdata, and what its runs came to.
type situation struct {
	storm.Scenario

	exact []figures // simulated, with every request
	large []figures // a sample of a thousand times as much; none of a burst, which is never a sample
	real  []figures
}

// situations reads testdata. The real side must know each word that is used there.
func situations(t *testing.T) (all []*situation) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "policy.yaml" {
			continue
		}
		s, err := simfile.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := unknown(s); len(found) > 0 {
			t.Fatalf("%s: the real side does not know %s", file, strings.Join(found, ", "))
		}
		all = append(all, &situation{Scenario: s.WithDefaults()})
	}
	return all
}

// play fills in what the simulator predicts and what happens, with seeds from the first on.
func (s *situation) play(t *testing.T, simulated, real, first int) {
	t.Helper()
	s.exact, s.large, s.real = nil, nil, nil
	for seed := range simulated {
		s.exact = append(s.exact, simulate(t, s.Scenario, first+seed, 1))
		if s.Fleets[0].Burst == 0 && seed%2 == 0 {
			s.large = append(s.large, simulate(t, s.Scenario, first+simulated+seed, 1000)) // other runs
		}
	}
	for seed := range real {
		s.real = append(s.real, run(t, s.Scenario, uint64(first+seed)))
	}
}

// simulate runs s with everything so many times as large: a sample, unless times is 1.
func simulate(t *testing.T, s storm.Scenario, seed int, times float64) figures {
	t.Helper()
	s.Seed, s.Engine = uint64(seed+1), storm.Exact
	o := storm.Options{}
	if times > 1 {
		s = larger(s, times)
		s.Engine, o.Within = storm.Auto, 1
	}
	r, err := storm.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if times > 1 != (r.Scale > 0) {
		t.Fatalf("%s, %v times as large: one of %v was run", s.Name, times, r.Scale)
	}
	f := predicted(&s, r, times)
	if v := r.Summary; times == 1 && v.Recovery >= 0 && math.Abs(f[recovery]-v.Recovery) > 1e-9 {
		t.Errorf("%s: recovery after %v s, and after %v s by the rule of the real side", s.Name, v.Recovery, f[recovery])
	}
	return f
}

// larger returns s with so many times as much of everything that there is many of.
func larger(s storm.Scenario, times float64) storm.Scenario {
	n := int(times)
	s.Fleets, s.Services = slices.Clone(s.Fleets), slices.Clone(s.Services)
	for i := range s.Fleets {
		f := &s.Fleets[i]
		f.Rate, f.Users, f.Instances = f.Rate*times, f.Users*n, f.Instances*n
		f.Load = slices.Clone(f.Load)
		for j := range f.Load {
			f.Load[j].Rate *= times
		}
	}
	for i := range s.Services {
		v := &s.Services[i]
		v.Capacity, v.QueueLength = v.Capacity*times, v.QueueLength*n
		v.Limit.Rate, v.Limit.Burst = v.Limit.Rate*times, v.Limit.Burst*times
		if v.Capacity > 0 {
			v.Concurrency *= n
		}
		v.Calls = slices.Clone(v.Calls)
		for j := range v.Calls {
			v.Calls[j].Instances *= n
		}
	}
	return s
}

// TestTruth holds what the simulator predicts to what happens: nine of ten figures within
// 10 %, or as near as chance allows. Real runs are not the same twice, even with one seed.
// A situation that differs is run anew and more often, since a few of so many figures
// differ by chance. Only the new runs count.
func TestTruth(t *testing.T) {
	ringtest.NotQuick(t, "it makes half a million requests")
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a sixth of the time
	simulated, real := 10, 2
	if *update {
		simulated, real = 30, 10
	}
	all := situations(t)
	t.Run("all", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				s.play(t, simulated, real, 0)
				if judge(s.exact, s.real).bad() || judge(s.large, s.real).bad() {
					t.Log("differs at first")
					s.play(t, 3*simulated, 5*real, 1000)
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var exact, large score
	for _, s := range all {
		exact.add(t, s.Name, s.exact, s.real)
		large.add(t, s.Name+", at scale", s.large, s.real)
	}
	for name, got := range map[string]score{"exact": exact, "at scale": large} {
		t.Logf("%s: %v", name, got)
		if agree, not := got[near]+got[tenth]+got[chance], got[far]+got[wrong]; agree < 9*not {
			t.Errorf("%s: %d figures agree and %d do not, want nine of ten", name, agree, not)
		}
	}
	if *update {
		write(t, all, exact, large)
	}
}

// How far a prediction is from reality.
const (
	silent = iota // there is no such figure, or it is 0 in all runs, as that of a budget is without one
	near          // within 5 %
	tenth         // within 10 %
	chance        // farther away, and by no more than chance
	far
	wrong // by more than 30 %
)

// compare judges a figure of all runs.
func compare(predicted, real []float64) int {
	if len(predicted) == 0 || len(real) == 0 || math.IsNaN(mean(predicted)) || slices.Max(predicted) == 0 && slices.Max(real) == 0 {
		return silent
	}
	p := mean(predicted)
	switch off := math.Abs(p - mean(real)); {
	case off <= 0.05*p:
		return near
	case off <= 0.1*p:
		return tenth
	case off <= 3*standardError(predicted, real):
		return chance
	case off <= 0.3*p:
		return far
	}
	return wrong
}

// score counts figures by how far the prediction is from reality.
type score [wrong + 1]int

// judge compares the figures of a situation.
func judge(predicted, real []figures) (c score) {
	for i := range count {
		c[compare(column(predicted, i), column(real, i))]++
	}
	return c
}

// bad reports whether the figures of one situation differ: one is wrong by more than 30 %,
// or more than two are far.
func (c score) bad() bool { return c[far] > 2 || c[wrong] > 0 }

// add adds the figures of a situation, and logs those that do not agree.
func (c *score) add(t *testing.T, name string, predicted, real []figures) {
	t.Helper()
	here := judge(predicted, real)
	for i := range count {
		p, r := column(predicted, i), column(real, i)
		if compare(p, r) >= far {
			t.Logf("%s: %s predicted %.4g, real %.4g (%.4g)", name, names[i], mean(p), mean(r), r)
		}
	}
	for verdict, n := range here {
		c[verdict] += n
	}
	if here.bad() {
		t.Errorf("%s: %d figures differ, and %d by more than 30 %%", name, here[far]+here[wrong], here[wrong])
	}
}

// String says how many there are: "Of 100 figures 80 are within 5 %, ...".
func (c score) String() string {
	ten := c[near] + c[tenth]
	return fmt.Sprintf("of %d figures, %d are within 5 %%, %d within 10 %%, and another %d differ by no more than chance",
		ten+c[chance]+c[far]+c[wrong], c[near], ten, c[chance])
}

// column returns one figure of all runs.
func column(runs []figures, i int) (values []float64) {
	for _, f := range runs {
		values = append(values, f[i])
	}
	return values
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func variance(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(values)-1)
}

// standardError returns that of the difference of two means. A few real runs may lie close
// together by chance: they are taken to vary as much as the simulated ones at least.
func standardError(predicted, real []float64) float64 {
	return math.Sqrt(variance(predicted)/float64(len(predicted)) + max(variance(predicted), variance(real))/float64(len(real)))
}
