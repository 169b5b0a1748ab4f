// Package idemkey reads the value of an Idempotency-Key header in its two spellings:
// bare, or as the quoted string of a structured field (RFC 9651 section 3.3.3), as the
// IETF's draft of the header has it. Both are the same key, for all that send it, honors
// it, counts its characters or writes it into a log.
package idemkey

import (
	"errors"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/internal/layer"
)

// Header is the header that carries the key.
const Header = "Idempotency-Key"

// Lines returns the lines of the key in h, which is an http.Header, however their name is
// spelled: net/http writes and reads it in one way, but a program that fills the map by
// itself may not, and "idempotency-key" goes over the wire as well.
func Lines(h map[string][]string) []string {
	lines := h[Header]
	for name, more := range h {
		if len(name) == len(Header) && name != Header && strings.EqualFold(name, Header) {
			lines = append(lines[:len(lines):len(lines)], more...)
		}
	}
	return lines
}

// Find returns the first of [Lines], or "". It costs a look at one name where the name is
// spelled as usual.
func Find(h map[string][]string) string {
	lines := h[Header]
	if len(lines) == 0 || lines[0] == "" {
		lines = Lines(h)
	}
	for _, line := range lines {
		if line != "" {
			return line
		}
	}
	return ""
}

// Err is what errors of this package match.
var Err = errors.New("invalid idempotency key")

// Check reports what is wrong with the text of a key: it must have 1 to 64 characters
// all of them printable ASCII.
func Check(key string) error {
	switch n := len(key); {
	case n == 0:
		return fmt.Errorf("%w: empty", Err)
	case n > layer.MaxKeyLen:
		return fmt.Errorf("%w: %d characters, at most %d (R-6)", Err, n, layer.MaxKeyLen)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Errorf("%w: character %d is not printable ASCII", Err, i+1)
		}
	}
	return nil
}

// Parse returns the text of a key as a header line has it. Parameters behind a quoted
// one are ignored. Errors match [Err] and do not repeat the value.
func Parse(line string) (string, error) {
	v := strings.Trim(line, " \t")
	if strings.HasPrefix(v, `"`) {
		var err error
		if v, err = unquote(v); err != nil {
			return "", err
		}
	} else if !Bare(v) {
		return "", fmt.Errorf("%w: more than one, or half quoted", Err)
	}
	return v, Check(v)
}

// Text returns the text of a key as a header line has it, and the line itself where it
// is neither spelling: another's server may know what it means.
func Text(line string) string {
	v := strings.Trim(line, " \t")
	if strings.HasPrefix(v, `"`) {
		if text, err := unquote(v); err == nil {
			return text
		}
	}
	return v
}

// Bare reports whether a text is read as itself where it is sent without quotes.
func Bare(text string) bool { return !strings.ContainsAny(text, `,"`) }

// unquote reads an sf-string and skips its parameters.
func unquote(v string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch v[i] {
		case '\\':
			if i++; i == len(v) || v[i] != '"' && v[i] != '\\' {
				return "", fmt.Errorf("%w: bad escape", Err)
			}
			b.WriteByte(v[i])
		case '"':
			if rest := strings.TrimLeft(v[i+1:], " "); rest != "" && rest[0] != ';' {
				return "", fmt.Errorf("%w: text after the quoted key", Err)
			}
			return b.String(), nil
		default:
			b.WriteByte(v[i])
		}
	}
	return "", fmt.Errorf("%w: no closing quote", Err)
}
