package cli

import (
	"flag"
	"regexp"
	"strings"
	"time"
)

// What package flag says of arguments that it cannot parse. It has no types for these
// errors, so their texts are read.
var (
	undefined = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	noValue   = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	badValue  = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^ :]+): (.*)$`)
)

// explained is an error of f.Parse in words that say what to write: package flag names
// flags with one dash, and says no more of a number than "parse error".
func explained(f *flag.FlagSet, err error) string {
	text := err.Error()
	if m := undefined.FindStringSubmatch(text); m != nil {
		return "unknown flag " + dashed(m[1])
	}
	if m := noValue.FindStringSubmatch(text); m != nil {
		return dashed(m[1]) + " needs a value"
	}
	m := badValue.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	why := m[3]
	if fl := f.Lookup(m[2]); fl != nil && (why == "parse error" || strings.HasPrefix(why, "strconv.")) {
		why = "want " + wanted(fl)
	}
	return "invalid value " + m[1] + " for " + dashed(m[2]) + ": " + why
}

// wanted says what a flag of one of package flag's own types takes.
func wanted(fl *flag.Flag) string {
	g, ok := fl.Value.(flag.Getter)
	if !ok {
		return "another value"
	}
	switch g.Get().(type) {
	case bool:
		return "true or false"
	case time.Duration:
		return "a duration such as 500ms, 30s or 24h"
	case float64:
		return "a number"
	}
	return "a whole number"
}

// dashed writes the name of a flag as the manual does.
func dashed(name string) string {
	if len(strings.TrimLeft(name, "-")) < 2 {
		return "-" + name
	}
	return "--" + strings.TrimLeft(name, "-")
}
