// Package score tells a rate that was counted from the rate itself: of a hundred
// calls to a dependency that fails 40 %, fifty fail every few seconds. What acts on
// a rate asks here whether chance would explain it.
package score

// Certain is the square of the quantile at 99.9 %, one-sided: Wilson's lower
// bound of that confidence lies above a threshold p when the rate exceeds p by
// more than that many variances p(1-p)/n (the score test).
const Certain = 3.0902323 * 3.0902323

// Exceeds reports whether n calls of which bad are bad show that their rate is
// above p, where z2 is the square of the standard deviations demanded.
func Exceeds(bad, n int64, p, z2 float64) bool {
	over := float64(bad) - p*float64(n)
	return over > 0 && over*over > z2*p*(1-p)*float64(n)
}
