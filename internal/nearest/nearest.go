// Package nearest finds the known name that may have been meant.
package nearest

import "strings"

// maxLen bounds the names that are compared: a longer one is not a typing error
// of any name of ours.
const maxLen = 64

// Of returns the name among known that is nearest to typed, when one is near
// enough to be a slip: at most one edit in three characters. Of equally near
// names the first wins.
func Of(typed string, known []string) (name string, ok bool) {
	if typed == "" || len(typed) > maxLen {
		return "", false
	}
	limit := max(len(typed)/3, 1) + 1
	for _, k := range known {
		if d := distance(fold(typed), fold(k)); d < limit {
			name, ok, limit = k, true, d
		}
	}
	return name, ok
}

// Hint ends the message about a name that is not known: ": did you mean ...?" when
// there is a nearest one, and otherwise what it is given.
func Hint(typed string, known []string, otherwise string) string {
	if name, ok := Of(typed, known); ok {
		return ": did you mean " + name + "?"
	}
	return otherwise
}

// separators are left out by fold.
var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// fold makes maxRetries, max-retries and max_retries alike.
func fold(s string) string { return separators.Replace(strings.ToLower(s)) }

// distance counts the insertions, deletions, substitutions and swaps of
// neighbors that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
