package grpcwire

import "strings"

// maxMessage bounds a grpc-message that is written, in bytes before they are encoded.
const maxMessage = 1 << 10

// EncodeMessage returns text as a grpc-message: percent-encoded but for the printable
// ASCII characters other than the percent sign itself. Long text is cut.
func EncodeMessage(text string) string {
	text = text[:min(len(text), maxMessage)]
	plain := true
	for i := range len(text) {
		plain = plain && verbatim(text[i])
	}
	if plain {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; verbatim(c) {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func verbatim(c byte) bool { return c >= ' ' && c <= '~' && c != '%' }

// DecodeMessage is the inverse of [EncodeMessage]. An invalid escape stays as it
// is: the specification has it so, for a broken message must not hide a status.
func DecodeMessage(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			high, okHigh := digit(text[i+1])
			low, okLow := digit(text[i+2])
			if okHigh && okLow {
				b.WriteByte(high<<4 | low)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
