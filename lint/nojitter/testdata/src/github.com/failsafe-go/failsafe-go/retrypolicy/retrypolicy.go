// Package retrypolicy builds on the other one. A library does not use itself.
package retrypolicy

import (
	"time"

	"github.com/failsafe-go/failsafe-go/policy"
)

type Builder struct{ base *policy.Base }

func (b *Builder) WithBackoff(first, most time.Duration) *Builder {
	b.base.WithBackoff(first, most)
	return b
}
