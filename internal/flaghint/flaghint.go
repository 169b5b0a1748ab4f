// Package flaghint finds the flag that a mistyped one may have meant.
package flaghint

import (
	"flag"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Of ends the message about arguments that f could not parse: with ": did you
// mean --name?" when a flag among them is not one of f and there is a near one,
// and with nothing otherwise. Package flag has no type for that error, so that
// the arguments are looked at again.
func Of(f *flag.FlagSet, args []string) string {
	typed, ok := unknown(f, args)
	if !ok || len(typed) == 1 { // every letter is near every other
		return ""
	}
	var known []string
	f.VisitAll(func(fl *flag.Flag) { known = append(known, fl.Name) })
	name, ok := nearest.Of(typed, known)
	if !ok {
		return ""
	}
	return ": did you mean " + Dashed(name) + "?"
}

// Dashed is a flag as the guides write it: -o, but --config.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknown returns the first flag of args that f does not have. It goes through
// them as f.Parse does: up to the first operand, over the values of flags.
func unknown(f *flag.FlagSet, args []string) (name string, ok bool) {
	for i := 0; i < len(args); i++ {
		name, inline, isFlag := Cut(args[i])
		if !isFlag {
			return "", false
		}
		fl := f.Lookup(name)
		switch {
		case fl == nil:
			return name, true
		case !inline && !IsBool(fl):
			i++ // over its value
		}
	}
	return "", false
}

// Cut returns the name of a flag as package flag reads it, and whether its value
// follows behind an equals sign. What is no flag ends the flags.
func Cut(arg string) (name string, inline, isFlag bool) {
	if len(arg) < 2 || arg[0] != '-' || arg == "--" {
		return "", false, false
	}
	name, _, inline = strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	return name, inline, true
}

// IsBool reports whether a flag stands without a value.
func IsBool(fl *flag.Flag) bool {
	b, ok := fl.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
