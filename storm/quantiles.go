package storm

import (
	"fmt"
	"math"

	"github.com/forbear-go/forbear/storm/internal/model"
	"github.com/forbear-go/forbear/storm/internal/report"
)

// maxQuantiles is more than any monitoring system exports.
const maxQuantiles = 100

// measure gives s the measured times of v, if it has any, and by Little's law as many
// servers as do v's capacity. Their number is whole, and the capacity is then theirs.
func (v *Service) measure(s *model.Service) {
	if v.Quantiles == nil {
		return
	}
	var knots []model.Knot
	for _, q := range v.Quantiles {
		knots = append(knots, model.Knot{Q: q.Q, Time: float64(q.Time)})
	}
	s.Law, s.Measured = model.Quantiles, model.NewMeasured(knots)
	if v.Capacity > 0 {
		s.Concurrency = max(1, int(v.Capacity*s.Measured.Mean()/1e9+0.5))
		s.Capacity = float64(s.Concurrency) / s.Measured.Mean() * 1e9
	}
}

// rounded notes each service whose whole number of servers does not do its capacity.
func (c *compiled) rounded() (notes []string) {
	for i, j := 0, 0; i < len(c.s.Services); i, j = i+1, j+c.m.Services[j].Replicas {
		v, m := &c.s.Services[i], &c.m.Services[j]
		does := m.Capacity * float64(m.Replicas)
		if m.Measured != nil && v.Capacity > 0 && math.Abs(does/v.Capacity-1) > 0.1 {
			notes = append(notes, fmt.Sprintf("%s does %s requests a second, not its capacity of %s: that is what %d servers with these quantiles do",
				v.Name, report.Amount(does), report.Amount(v.Capacity), m.Concurrency*m.Replicas))
		}
	}
	return notes
}

// measured looks at the quantiles of v. Times may be equal, as a histogram of few buckets
// gives them.
func (c *checker) measured(path string, v *Service) {
	for _, word := range []struct {
		name string
		set  bool
	}{{"time", v.Time != 0}, {"law", v.Law != ""}, {"cv", v.CV != 0}, {"concurrency", v.Concurrency != 0}} {
		if word.set {
			c.add(path+"."+word.name, "follows from quantiles: remove one of them")
		}
	}
	path += ".quantiles"
	if n := len(v.Quantiles); n < 2 || n > maxQuantiles {
		c.add(path, "has %d entries: want 2 to %d; for one time, set time and law: fixed", n, maxQuantiles)
	}
	var last Quantile
	for i, q := range v.Quantiles {
		inner := fmt.Sprintf("%s[%d]", path, i)
		c.number(inner+".q", q.Q, 1e-6, 1-1e-6)
		c.number(inner+".time", q.Time.Seconds(), 1e-9, 3600)
		if i > 0 && q.Q <= last.Q {
			c.add(inner+".q", "%v is not above the one before, %v", q.Q, last.Q)
		}
		if q.Time < last.Time {
			c.add(inner+".time", "%v is below that of q %v, %v", q.Time, last.Q, last.Time)
		}
		last = q
	}
}
