package model

// Step is the rate of an open loop, in requests a second, from At on, in ns since the
// start.
type Step struct {
	At   int64
	Rate float64
}

// Open reports whether f is an open loop.
func (f *Fleet) Open() bool { return f.Rate > 0 || f.Load != nil }

// First returns the rate at the start.
func (f *Fleet) First() float64 {
	if f.Load != nil {
		return f.Load[0].Rate
	}
	return f.Rate
}

// Peak returns the greatest rate of f before end.
func (f *Fleet) Peak(end int64) float64 {
	peak := f.Rate
	for _, s := range f.Load {
		if s.At < end {
			peak = max(peak, s.Rate)
		}
	}
	return peak
}

// Mean returns the mean rate of f until end.
func (f *Fleet) Mean(end int64) float64 {
	mean := f.Rate
	for i, s := range f.Load {
		to := end
		if i+1 < len(f.Load) {
			to = min(to, f.Load[i+1].At)
		}
		mean += s.Rate * float64(max(to-s.At, 0)) / float64(end)
	}
	return mean
}
