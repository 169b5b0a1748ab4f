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
	if found := match(want, got); found < len(want) {
		return fmt.Errorf("no line is %q in what was printed:\n%s", want[found], output)
	} else if found > len(want) {
		return fmt.Errorf("more was printed:\n%s", output)
	}
	return nil
}

// match returns how many of the wanted lines come as they are wanted: all of them, and one
// more where something follows.
func match(want, got []string) (found int) {
	switch {
	case len(want) == 0:
		return min(len(got), 1)
	case want[0] == "...":
		for skip := range len(got) + 1 {
			n := 1 + match(want[1:], got[skip:])
			if n == len(want) {
				return n
			}
			found = max(found, min(n, len(want)-1))
		}
		return found
	case len(got) == 0 || !same(want[0], got[0]):
		return 0
	}
	return 1 + match(want[1:], got[1:])
}

// Contains says which line is not in the output, or nothing: lines may be between those that
// are wanted, as of a log. end is the number of lines up to the last of them.
func Contains(want []string, output string) (end int, err error) {
	got := strings.Split(output, "\n")
	for _, line := range want {
		if line == "..." {
			continue
		}
		i := slices.IndexFunc(got[end:], func(g string) bool { return same(line, g) })
		if i < 0 {
			return 0, fmt.Errorf("no line is %q in what was printed:\n%s", line, output)
		}
		end += i + 1
	}
	return end, nil
}

// same compares a line with a pattern, in which "…" is any text.
func same(pattern, line string) bool {
	parts := strings.Split(strings.TrimRight(pattern, " "), "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(strings.TrimRight(line, " \r"))
}
