package model

import "math"

// Knot is a quantile: the part Q, above 0 and below 1, takes at most Time, in ns.
type Knot struct{ Q, Time float64 }

// Measured is a distribution of times through given quantiles. The logarithm of the time
// is linear between them on the scale of the normal distribution, so that each piece is
// one of a lognormal. The first and the last slope go on outwards, up to 10 times the
// longest time that is given.
type Measured struct{ pieces []piece }

// piece is exp(a + b z) for normal quantiles z from the end of the piece before to z.
type piece struct{ z, a, b float64 }

// tail is the greatest time, as a multiple of the longest one that was measured.
const tail = 10

// NewMeasured returns the distribution through two knots or more, which rise in Q and do
// not fall in Time.
func NewMeasured(knots []Knot) *Measured {
	m := &Measured{}
	z := func(k Knot) float64 { return math.Sqrt2 * math.Erfinv(2*k.Q-1) }
	for i := 1; i < len(knots); i++ {
		from, to := knots[i-1], knots[i]
		b := (math.Log(to.Time) - math.Log(from.Time)) / (z(to) - z(from))
		m.pieces = append(m.pieces, piece{z(to), math.Log(to.Time) - b*z(to), b})
	}
	longest := knots[len(knots)-1].Time
	last := &m.pieces[len(m.pieces)-1]
	last.z = math.Inf(1)
	if last.b > 0 { // the tail ends on a plateau
		last.z = (math.Log(tail*longest) - last.a) / last.b
		m.pieces = append(m.pieces, piece{math.Inf(1), math.Log(tail * longest), 0})
	}
	return m
}

// At returns the time in ns of the request at quantile z of the standard normal: a normal
// random number makes a random time.
func (m *Measured) At(z float64) float64 {
	i := 0
	for z > m.pieces[i].z {
		i++
	}
	return math.Exp(m.pieces[i].a + m.pieces[i].b*z)
}

// Mean returns the mean time in ns.
func (m *Measured) Mean() (mean float64) {
	below := func(z float64) float64 { return (1 + math.Erf(z/math.Sqrt2)) / 2 }
	from := math.Inf(-1)
	for _, p := range m.pieces {
		// The part of a lognormal's mean that lies between two quantiles.
		mean += math.Exp(p.a+p.b*p.b/2) * (below(p.z-p.b) - below(from-p.b))
		from = p.z
	}
	return mean
}
