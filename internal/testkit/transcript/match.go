package transcript

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Match says where output is not what was to be shown, or nothing. All of the output has
// to be there.
func Match(want []string, output string) error {
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if ok, at := match(want, got); !ok {
		return fmt.Errorf("no line is %q in what was printed:\n%s", at, output)
	}
	return nil
}

// match reports whether all lines are wanted, and otherwise the first that was not found.
func match(want, got []string) (ok bool, at string) {
	if len(want) == 0 {
		return len(got) == 0, "the end"
	}
	if want[0] == "..." {
		for skip := range len(got) + 1 {
			if ok, at = match(want[1:], got[skip:]); ok {
				return true, ""
			}
		}
		return false, at
	}
	if len(got) == 0 || !same(want[0], got[0]) {
		return false, want[0]
	}
	return match(want[1:], got[1:])
}

// Contains says which line is not in the output, or nothing: lines may be between those that
// are wanted, as of a log.
func Contains(want []string, output string) error {
	got := strings.Split(output, "\n")
	for _, line := range want {
		if line == "..." {
			continue
		}
		i := slices.IndexFunc(got, func(g string) bool { return same(line, g) })
		if i < 0 {
			return fmt.Errorf("no line is %q in what was printed:\n%s", line, output)
		}
		got = got[i+1:]
	}
	return nil
}

// same compares a line with a pattern, in which "…" is any text.
func same(pattern, line string) bool {
	parts := strings.Split(strings.TrimRight(pattern, " "), "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(strings.TrimRight(line, " \r"))
}
