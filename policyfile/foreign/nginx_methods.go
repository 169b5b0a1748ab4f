package foreign

import (
	"slices"
	"strings"
)

// nginxWrites says whether POST and PATCH arrive at a place.
type nginxWrites int

const (
	writesArrive nginxWrites = iota
	writesMayArrive
	writesEnd
)

// writesIn reports whether a block lets POST and PATCH through. Conditions on the
// method are not evaluated; those that speak of nothing but other methods are left
// out.
func writesIn(block []directive) nginxWrites {
	found := writesArrive
	for _, d := range block {
		switch {
		case d.args[0] == "limit_except":
			named := slices.ContainsFunc(d.args[1:], func(m string) bool { return m == "POST" || m == "PATCH" })
			denied := slices.ContainsFunc(d.block, func(in directive) bool { return in.args[0] == "deny" && in.arg() == "all" })
			allowed := slices.ContainsFunc(d.block, func(in directive) bool { return in.args[0] == "allow" })
			switch {
			case !named && denied && !allowed:
				return writesEnd
			case !named && denied:
				found = writesMayArrive
			}
		case d.args[0] == "if" && len(d.args) > 1 && strings.Contains(d.args[1], "$request_method"):
			text := strings.Join(d.args[1:], " ")
			if !slices.ContainsFunc(d.block, func(in directive) bool { return in.args[0] == "return" || in.args[0] == "deny" }) {
				continue // it adds a header
			}
			if strings.Contains(text, "POST") || strings.Contains(text, "PATCH") || strings.Contains(text, "!") {
				found = writesMayArrive
			}
		}
	}
	return found
}
