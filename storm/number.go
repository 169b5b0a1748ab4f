package storm

import (
	"math"
	"strconv"
)

// appendNumber writes f with at most six significant digits: enough for every
// report, and short.
func appendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	s := strconv.FormatFloat(f, 'g', 6, 64)
	v, _ := strconv.ParseFloat(s, 64)
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}
