// Package label keeps the labels of metrics few and plain.
package label

import (
	"strings"
	"sync"
)

const (
	// MaxValues bounds how many values one label takes in a [Set].
	MaxValues = 200
	// MaxLength bounds a value, in bytes.
	MaxLength = 64
	// Other stands for all values beyond.
	Other = "other"
)

// Set remembers the values that labels have taken. The zero value is ready. It
// is safe for concurrent use.
type Set struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

// Bounded returns value if it may be a value of label: short, a plain name, and
// one of not too many. Anything else is [Other]: a URL, a key or the text of an
// error never becomes a label.
func (s *Set) Bounded(label, value string) string {
	if !plain(value) {
		return Other
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]map[string]bool{}
	}
	seen := s.seen[label]
	if seen == nil {
		seen = map[string]bool{}
		s.seen[label] = seen
	}
	if !seen[value] {
		if len(seen) >= MaxValues {
			return Other
		}
		seen[value] = true
	}
	return value
}

// Clip bounds a name that comes from the program itself.
func Clip(s string) string {
	if len(s) > MaxLength {
		s = s[:MaxLength]
	}
	return strings.ToValidUTF8(s, "")
}

// plain reports whether s looks like a name.
func plain(s string) bool {
	if s == "" || len(s) > MaxLength || strings.Contains(s, "//") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("_-.:/", c) >= 0:
		default:
			return false
		}
	}
	return true
}
