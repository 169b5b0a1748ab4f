package storm

import (
	"cmp"
	"fmt"
	"time"
)

// WithDefaults returns s with its zero fields filled in. It does not validate. The
// fleets, services and faults of the result are copies, free to be changed; the
// pointers in a [Client], the steps of a load and quantiles are not.
func (s Scenario) WithDefaults() Scenario {
	s.Duration = cmp.Or(s.Duration, Duration(time.Minute))
	s.Seed = cmp.Or(s.Seed, 1)
	s.Engine = cmp.Or(s.Engine, Auto)
	s.Bin = cmp.Or(s.Bin, max(s.Duration/600, Duration(time.Millisecond)))
	// Copies, as the defaults must not show in the caller's scenario.
	s.Fleets = append([]Fleet(nil), s.Fleets...)
	s.Services = append([]Service(nil), s.Services...)
	s.Faults = append([]Fault(nil), s.Faults...)
	first := ""
	if len(s.Services) > 0 {
		first = s.Services[0].Name
	}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		f.Name = cmp.Or(f.Name, fmt.Sprintf("fleet%d", i+1))
		f.Instances = cmp.Or(f.Instances, 1)
		f.Calls = cmp.Or(f.Calls, first)
		if f.Users > 0 {
			f.Think = cmp.Or(f.Think, Duration(time.Second))
		}
	}
	for i := range s.Services {
		v := &s.Services[i]
		// By Little's law; what remains of Time is in their number.
		if v.Capacity > 0 && v.Time > 0 && v.Concurrency == 0 && v.Quantiles == nil {
			v.Concurrency = max(1, int(v.Capacity*v.Time.Seconds()+0.5))
			v.Time = 0
		}
		if v.Capacity > 0 && v.Quantiles == nil {
			v.Concurrency = cmp.Or(v.Concurrency, 1)
		}
		if v.Quantiles == nil {
			v.Law = cmp.Or(v.Law, "exponential")
		}
		if v.Law == "lognormal" {
			v.CV = cmp.Or(v.CV, 1)
		}
		if v.Limit.Rate != 0 {
			v.Limit.Burst = cmp.Or(v.Limit.Burst, max(v.Limit.Rate, 1))
		}
		v.Calls = append([]Edge(nil), v.Calls...)
		for j := range v.Calls {
			v.Calls[j].FanOut = cmp.Or(v.Calls[j].FanOut, 1)
			v.Calls[j].Instances = cmp.Or(v.Calls[j].Instances, 1)
		}
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.Kind != Spike {
			f.Service = cmp.Or(f.Service, first)
		}
		// A kind has defaults for its own fields alone: see faultFields.
		switch f.Kind {
		case Outage, Slow:
			f.Rate = cmp.Or(f.Rate, 1)
		case Errors:
			f.Rate = cmp.Or(f.Rate, 1)
			f.Mode = cmp.Or(f.Mode, Independent)
		case Brownout:
			f.Factor = cmp.Or(f.Factor, 0.5)
		case SlowStart:
			f.Factor = cmp.Or(f.Factor, 0.1)
		case Spike:
			f.Factor = cmp.Or(f.Factor, 2)
		case Partition:
			f.Share = cmp.Or(f.Share, 1)
		}
	}
	return s
}
