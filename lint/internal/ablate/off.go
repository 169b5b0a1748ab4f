//go:build !ablate

package ablate

// On reports whether a part is on: all are, unless the linter was built with the tag
// ablate.
func On(string) bool { return true }
