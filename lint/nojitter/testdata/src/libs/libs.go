// Package libs uses a library.
package libs

import (
	"time"

	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

func build(b *retrypolicy.Builder) {
	b.WithBackoff(time.Second, time.Minute) // want `FB1002: failsafe-go WithBackoff without WithJitter`
}
