package durable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// scanner walks through a JSON text that is known to be valid.
type scanner struct {
	text []byte
	at   int
}

// next enters an array or an object, or moves on to its next item. It reports false at the
// end, which it passes.
func (s *scanner) next(end byte) bool {
	if s.space(); s.text[s.at] != end {
		s.at++ // the opening bracket, or a comma
	}
	if s.space(); s.text[s.at] == end {
		s.at++
		return false
	}
	return true
}

// space passes white space.
func (s *scanner) space() {
	for strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// name returns the name of a field, as it is written and as it reads, and passes the colon.
func (s *scanner) name() (raw []byte, name string) {
	raw = s.skip()
	if bytes.IndexByte(raw, '\\') < 0 {
		name = string(raw[1 : len(raw)-1])
	} else {
		_ = json.Unmarshal(raw, &name) // it is valid
	}
	s.space()
	s.at++
	return raw, name
}

// skip passes a value and returns its text.
func (s *scanner) skip() []byte {
	from, depth := s.at, 0
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch c {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default: // within a number or a word, or between values
			if depth > 0 || s.at < len(s.text) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.text[s.at])) {
				continue
			}
		}
		if depth == 0 {
			break
		}
	}
	return s.text[from:s.at]
}

// quoted passes the rest of a string.
func (s *scanner) quoted() {
	for {
		s.at += bytes.IndexAny(s.text[s.at:], `"\`) + 1
		if s.text[s.at-1] == '"' {
			return
		}
		s.at++ // the escaped character
	}
}

// badEscape says which escape of a string stands for no character: half of a surrogate
// pair, which a decoder would replace (RFC 8259 section 8.2), or a zero, which databases
// refuse.
func badEscape(raw []byte) string {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return ""
		}
		if raw = raw[i+1:]; raw[0] != 'u' {
			raw = raw[1:]
			continue
		}
		unit := hex(raw[1:5])
		raw = raw[5:]
		switch {
		case unit == 0:
			return "a zero character"
		case unit < 0xd800 || unit > 0xdfff:
		case unit > 0xdbff || len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' || hex(raw[2:6])&0xfc00 != 0xdc00:
			return "half of a surrogate pair, which is no character"
		default:
			raw = raw[6:]
		}
	}
}

// hex reads the four digits of an escape.
func hex(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits), 16, 16)
	return n
}
