// Package enum gives enumerations the names that files, logs and metrics use.
package enum

import "fmt"

// Name returns the name of value i, or "invalid(i)" beyond the last. It never
// panics, because names are made while errors are reported.
func Name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

// Parse is the inverse of [Name]. what names the enumeration in the error.
func Parse(what string, names []string, text []byte) (uint8, error) {
	for i, name := range names {
		if name == string(text) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %v", what, text, names)
}
