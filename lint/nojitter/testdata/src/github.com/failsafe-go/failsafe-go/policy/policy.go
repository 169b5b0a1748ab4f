// Package policy stands in for a part of the library that others build on.
package policy

import "time"

type Base struct{}

func (b *Base) WithBackoff(first, most time.Duration) *Base { return b }
