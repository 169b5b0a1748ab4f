package cli

import (
	"flag"
	"regexp"
	"strings"
)

// choiceList is how the usage of a flag lists the values that it takes: "text, json
// or csv", at the beginning or behind a colon, up to a semicolon, a bracket or the
// end. It may be what the usage quotes, and do without the or.
var choiceList = regexp.MustCompile("(?:^|: |`)([a-z][a-z0-9-]*(?:(?:, | or )[a-z][a-z0-9-]*)+)(?:$|;|`| \\()")

// Choices returns the values of a flag that takes one of a few, in the order in which
// its usage lists them, and nil for any other flag. The usage is the one place that
// says them: what --help shows is what a shell completes.
func Choices(fl *flag.Flag) []string {
	m := choiceList.FindStringSubmatch(fl.Usage)
	if m == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ")
}
