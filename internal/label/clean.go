package label

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxField bounds a field that came from outside, in bytes.
const maxField = 128

// Clean makes a value from outside safe to log: bounded, valid, and without the
// control characters that could start a line of their own or turn the reading
// direction.
func Clean(s string) string {
	if len(s) > maxField {
		s = s[:maxField]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufeff' ||
			r >= '\u200b' && r <= '\u200f' || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return -1
		}
		return r
	}, s)
}

// Percent returns a fraction as a percentage: 0.2 is "20%".
func Percent(fraction float64) string { return fmt.Sprintf("%g%%", fraction*100) }
