package label

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Control reports whether r is a control character, as "no control characters" is meant
// everywhere: those of ASCII and of C1, which begin a line of their own or drive a
// terminal, and those that turn the direction of a text, which then shows as another one.
func Control(r rune) bool {
	if r < utf8.RuneSelf { // most are
		return r < ' ' || r == 0x7f
	}
	return r < 0xa0 || unicode.Is(unicode.Bidi_Control, r)
}

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
		if Control(r) || r == utf8.RuneError || r == '\ufeff' || r >= '\u200b' && r <= '\u200d' || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, s)
}

// Percent returns a fraction as a percentage: 0.2 is "20%".
func Percent(fraction float64) string { return fmt.Sprintf("%g%%", fraction*100) }
