package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// AppendNumber writes f with at most six significant digits: enough for every
// report, and short.
func AppendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	s := strconv.FormatFloat(f, 'g', 6, 64)
	v, _ := strconv.ParseFloat(s, 64)
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// AppendFinite writes f as JSON, which has null for what is not a finite number.
func AppendFinite(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	return AppendNumber(b, f)
}

// AppendArray writes values as a JSON array.
func AppendArray(b []byte, values []float64) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendFinite(b, v)
	}
	return append(b, ']')
}

// Amount writes a number for people: 1,234 or 1.23 M.
func Amount(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e9:
		return fmt.Sprintf("%.3g G", v/1e9)
	case a >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.3g k", v/1e3)
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// Count writes a number of things for people: to the last one below a million, so that
// counts which add up are seen to, and as an amount above.
func Count(v float64) string {
	if math.Abs(v) >= 1e6 {
		return Amount(v)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	if len(s) > 3 && v > 0 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

// Plain writes a number with about three digits and without an exponent, and - for none.
func Plain(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if a := math.Abs(v); a >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// Latency writes milliseconds for people: 0.23 ms, 944 ms or 1.72 s, and - for none.
func Latency(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "-"
	case ms >= 1000:
		return Plain(ms/1000) + " s"
	}
	return Plain(ms) + " ms"
}

// Peak returns the greatest of values, and 0 when none is above it. It passes over
// what is not a number.
func Peak(values []float64) float64 {
	if top := greatest(values); top > 0 {
		return top
	}
	return 0
}

// greatest returns the greatest of values, or NaN when none is a number.
func greatest(values []float64) float64 {
	top := math.NaN()
	for _, v := range values {
		if !(v <= top) && !math.IsNaN(v) {
			top = v
		}
	}
	return top
}

// WriteCSV writes a header and n lines. The cells of a line are strings and float64: what
// is not a number leaves its cell empty.
func WriteCSV(w io.Writer, header string, n int, line func(i int) []any) error {
	b := csv.NewWriter(w) // its errors wait for the flush
	_ = b.Write(strings.Split(header, ","))
	for i := range n {
		var cells []string
		for _, cell := range line(i) {
			text := fmt.Sprint(cell)
			if v, ok := cell.(float64); ok && math.IsNaN(v) {
				text = ""
			} else if ok {
				text = string(AppendNumber(nil, v))
			}
			cells = append(cells, text)
		}
		_ = b.Write(cells)
	}
	b.Flush()
	return b.Error()
}
