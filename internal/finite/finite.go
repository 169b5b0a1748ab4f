// Package finite refuses figures that are none where a constructor has no error to return.
package finite

import (
	"fmt"
	"math"
)

// Must panics when v is NaN or infinite, as [time.NewTicker] does for an interval that
// makes no sense. A comparison with NaN is false, so that a limit of NaN is none; what
// computed it has divided by zero. name is that of the figure, "budget: ratio".
func Must(name string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		panic(fmt.Sprintf("%s is %v: want a finite number", name, v))
	}
}
