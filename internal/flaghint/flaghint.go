// Package flaghint finds the flag that a mistyped one may have meant.
package flaghint

import (
	"flag"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Of ends the message about arguments that f could not parse: with ": did you
// mean --name?" when err is about a flag that f does not have and there is a near
// one, and with nothing otherwise. Package flag has no type for that error, so its
// text is read.
func Of(f *flag.FlagSet, err error) string {
	typed, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok || len(typed) == 1 { // every letter is near every other
		return ""
	}
	var known []string
	f.VisitAll(func(fl *flag.Flag) { known = append(known, fl.Name) })
	name, ok := nearest.Of(typed, known)
	switch {
	case !ok:
		return ""
	case len(name) == 1:
		return ": did you mean -" + name + "?"
	}
	return ": did you mean --" + name + "?"
}
