package model

// LoadMeter is the arrival rate of the last second, for errors that depend on
// the load. The engine advances it every tenth of a second. The zero value has
// seen nothing.
type LoadMeter struct {
	bins [11]float64 // ten that are closed, and the open one
	open int
	rate float64 // sum of the closed bins
}

// Advance closes the open bin and drops the one that is a second old.
func (l *LoadMeter) Advance() {
	l.rate += l.bins[l.open]
	l.open = (l.open + 1) % len(l.bins)
	l.rate -= l.bins[l.open]
	l.bins[l.open] = 0
}

// Add counts n arrivals in the open bin.
func (l *LoadMeter) Add(n float64) { l.bins[l.open] += n }

// Rate returns the arrivals of the ten closed bins, which are those of a second.
func (l *LoadMeter) Rate() float64 { return l.rate }
