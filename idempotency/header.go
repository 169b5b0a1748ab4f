package idempotency

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errNoKey is what readKey returns when the header is not there at all.
var errNoKey = errors.New("no idempotency key")

// readKey returns the key of a request, which is in one header line.
func readKey(h http.Header) (string, error) {
	lines := h.Values(Header)
	switch len(lines) {
	case 0:
		return "", errNoKey
	case 1:
	default:
		return "", fmt.Errorf("%w: %d header lines", ErrKey, len(lines))
	}
	return ParseKey(lines[0])
}

// ParseKey reads a key as a header line has it: the bare characters, or a quoted
// string of RFC 9651 with parameters, which are ignored. Errors are [ErrKey], and
// do not repeat the value.
func ParseKey(line string) (string, error) {
	v := strings.Trim(line, " \t")
	if strings.HasPrefix(v, `"`) {
		var err error
		if v, err = unquote(v); err != nil {
			return "", err
		}
	} else if strings.ContainsAny(v, `,"`) {
		return "", fmt.Errorf("%w: more than one, or half quoted", ErrKey)
	}
	return v, CheckKey(v)
}

// unquote reads an sf-string and skips its parameters.
func unquote(v string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch v[i] {
		case '\\':
			if i++; i == len(v) || v[i] != '"' && v[i] != '\\' {
				return "", fmt.Errorf("%w: bad escape", ErrKey)
			}
			b.WriteByte(v[i])
		case '"':
			if rest := strings.TrimLeft(v[i+1:], " "); rest != "" && rest[0] != ';' {
				return "", fmt.Errorf("%w: text after the quoted key", ErrKey)
			}
			return b.String(), nil
		default:
			b.WriteByte(v[i])
		}
	}
	return "", fmt.Errorf("%w: no closing quote", ErrKey)
}
