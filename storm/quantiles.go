package storm

import (
	"fmt"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// maxQuantiles is more than any monitoring system exports.
const maxQuantiles = 100

// measure gives s the measured times of v, if it has any, and by Little's law as many
// servers as do v's capacity.
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
	}
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
