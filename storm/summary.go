package storm

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// result turns the counts of a run into rates and judges them. A run that is stuck
// although the load alone is too much is overloaded, with or without its fault.
func (c *compiled) result(rec *model.Record) *Result {
	s := &c.s
	res := &Result{
		Scenario: s.Name, Seed: s.Seed, Duration: s.Duration, Bin: s.Bin, Trigger: s.trigger(),
		Events: rec.Events, Stopped: rec.Stopped, begun: rec.Begun, Notes: c.rounded(),
	}
	for _, f := range s.Faults {
		res.Faults = append(res.Faults, [2]Duration{f.At, f.At + f.For})
	}
	res.Series.fill(rec.Bins, s.Bin)
	res.Summary.fill(rec, s.Bin)
	res.refusals = rec.Refused[reason.BreakerOpen] + rec.Postponed[reason.BreakerOpen]
	for i, t := range merged(c.m, rec) {
		v := ServiceResult{
			Name: s.Services[i].Name, Arrivals: t.Arrivals, Retries: t.Retries, Served: t.Served,
			Wasted: t.Wasted, Shed: t.Shed, MaxQueue: t.MaxQueue,
			PerCall: t.Arrivals / max(res.Summary.Calls, 1),
		}
		for _, n := range t.Load {
			v.Load = append(v.Load, n*1e9/float64(s.Bin))
		}
		res.Services = append(res.Services, v)
	}
	res.Summary.Verdict, res.Summary.Recovery = judge(res, patience(c.m), c.lasting())
	if res.Summary.Verdict == Metastable && c.m.Overloaded() && !c.s.stepped() {
		res.Summary.Verdict = Overloaded // it would not hold without the fault
	}
	// A full bulkhead counts as a failure, so that breakers open on it.
	sum := &res.Summary
	if own := sum.ConcurrencyRefused + sum.BreakerRefused; sum.Verdict == Overloaded && !c.m.Overloaded() &&
		sum.ConcurrencyRefused > 0 && own > sum.Failed/2 {
		sum.Verdict = Limited
	}
	return res
}

// fill adds one number per bin to each series. The multiplier of a bin without
// calls is 0 when retries came in it: it has no value, and 0 is seen to be none.
func (s *Series) fill(bins []model.Tally, bin Duration) {
	perSecond := 1e9 / float64(bin)
	for i := range bins {
		b := &bins[i]
		s.Offered = append(s.Offered, b.Calls*perSecond)
		s.Fresh = append(s.Fresh, (b.Calls-b.Turned)*perSecond)
		s.Retry = append(s.Retry, b.Retry*perSecond)
		s.Good = append(s.Good, b.Good*perSecond)
		s.Failed = append(s.Failed, b.Failed*perSecond)
		// A quiet bin sends what it is asked to.
		m := 1.0
		if b.Calls > 0 {
			m = b.Attempts() / b.Calls
		} else if b.Retry > 0 {
			m = 0
		}
		s.Multiplier = append(s.Multiplier, m)
		s.P50 = append(s.P50, b.P50*1e3)
		s.P99 = append(s.P99, b.P99*1e3)
		s.Queue = append(s.Queue, b.Queue)
		s.Budget = append(s.Budget, b.Budget)
		s.Breaker = append(s.Breaker, b.Breaker)
		s.Wasted = append(s.Wasted, b.Wasted*perSecond)
	}
}

// fill sums the bins up. Verdict, recovery and costs are for [judge] and the second
// run to say.
func (s *Summary) fill(rec *model.Record, bin Duration) {
	for i := range rec.Bins {
		b := &rec.Bins[i]
		s.Calls += b.Calls
		s.Attempts += b.Attempts()
		s.Retries += b.Retry
		s.Good += b.Good
		s.Failed += b.Failed
		s.MaxQueue = max(s.MaxQueue, b.Queue)
	}
	s.Multiplier = s.Attempts / max(s.Calls, 1e-12)
	// Waste is a part of the work of all services, those of the layers below included.
	var work, wasted float64
	for i := range rec.Services {
		work += rec.Services[i].Served
		wasted += rec.Services[i].Wasted
	}
	if work > 0 {
		s.Wasted = wasted / work
	}
	p50, p99, mean := rec.Latency()
	s.P50, s.P99, s.Mean = Latency(p50*1e3), Latency(p99*1e3), Latency(mean*1e3)
	ended := func(why string, n float64) {
		if n > 0 {
			if s.Reasons == nil {
				s.Reasons = map[string]float64{}
			}
			s.Reasons[why] = n
		}
	}
	for why, n := range rec.Refused {
		ended(forbear.Reason(why).String(), n)
	}
	ended("throttled", rec.Throttled)
	s.Open = max(0, s.Calls-s.Good-s.Failed)
	s.BudgetRefused = rec.Refused[reason.Budget]
	s.BreakerRefused = rec.Refused[reason.BreakerOpen]
	s.ConcurrencyRefused = rec.Refused[reason.BulkheadFull]
	for _, n := range rec.Postponed {
		s.Postponed += n
	}
	s.multipliers(rec.Bins, bin)
}

// multipliers finds the peak over spans of a second, where noise is small, and
// the multiplier and goodput of the last tenth of the run.
func (s *Summary) multipliers(bins []model.Tally, bin Duration) {
	if len(bins) == 0 {
		return
	}
	span := max(1, int(time.Second/bin.D()))
	var calls, attempts float64
	for i := range bins {
		calls += bins[i].Calls
		attempts += bins[i].Attempts()
		if i >= span {
			calls -= bins[i-span].Calls
			attempts -= bins[i-span].Attempts()
		}
		if calls > 0.5 && i >= span-1 {
			s.PeakMultiplier = max(s.PeakMultiplier, attempts/calls)
		}
	}
	s.PeakMultiplier = max(s.PeakMultiplier, s.Multiplier)
	// The last tenth, where a run that is stuck shows what it is stuck at.
	var end model.Tally
	for _, b := range bins[len(bins)-max(1, len(bins)/10):] {
		end.Calls += b.Calls
		end.Turned += b.Turned
		end.Retry += b.Retry
		end.Good += b.Good
	}
	if end.Calls > 0 {
		s.FinalMultiplier = end.Attempts() / end.Calls
		s.FinalGoodput = end.Good / end.Calls
	}
}
