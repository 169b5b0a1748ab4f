package retryloop

import (
	"regexp"

	"golang.org/x/tools/go/ssa"
)

var selectWord = regexp.MustCompile(`(?i)retry.?if|^if|handle|classif|predicate|abort`)

// Selective reports whether the helper that c calls, or its options, choose
// which errors are tried again, or whether the callback marks some as final.
func (r *Result) Selective(c *ssa.Call) bool {
	fn := static(c.Common())
	if fn == nil || len(fn.Blocks) == 0 || !r.known.own(fn) {
		return selectiveCall(c)
	}
	for _, reg := range r.pkg.of(fn).regions() {
		if reg.InspectsError() {
			return true
		}
	}
	return false
}

// selectiveCall reports whether a call of a library is given an option that
// says what is tried again: retry.RetryIf(...).
func selectiveCall(c *ssa.Call) bool {
	for _, b := range c.Parent().Blocks {
		for _, in := range b.Instrs {
			o, ok := in.(*ssa.Call)
			if ok && CalleePkg(o.Common()) == CalleePkg(c.Common()) && selectWord.MatchString(CalleeName(o.Common())) {
				return true
			}
		}
	}
	return false
}
