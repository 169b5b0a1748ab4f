package budget

// SetRand replaces the randomness of b.
func (b *Adaptive) SetRand(rand func() float64) { b.draw = rand }
