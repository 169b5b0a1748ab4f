package mend

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

var (
	// sleepWord marks functions that let time pass and do nothing else; clockWord
	// those of clocks, whatever package they are of.
	sleepWord = regexp.MustCompile(`(?i)sleep|pause`)
	clockWord = regexp.MustCompile(`^(After|NewTimer|Timer|Reset)$`)
	// endWord marks channels that end a wait for good, as a context does.
	endWord = regexp.MustCompile(`(?i)quit|stop|done|clos|exit|shut|cancel|term`)
)

// sleeps reports whether a call certainly waits for the duration that it is
// given, and not at most that long for something else: the limit of a wait for a
// state must not become shorter by chance.
func sleeps(c *ssa.Call) bool {
	com := c.Common()
	name := dataflow.CalleeName(com)
	fn := dataflow.Static(com)
	switch {
	case dataflow.CalleePkg(com) == "time", sleepWord.MatchString(name), clockWord.MatchString(name):
		return true
	case fn == nil || len(fn.Blocks) == 0:
		return false
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		switch in := in.(type) {
		case *ssa.Select:
			for _, st := range in.States {
				if st.Dir != types.RecvOnly || !ends(st.Chan) {
					return false
				}
			}
		case *ssa.UnOp:
			if in.Op == token.ARROW && !ends(in.X) {
				return false
			}
		}
	}
	return true
}

// ends reports whether a channel is a clock's, a context's, or one that is
// closed at the end.
func ends(ch ssa.Value) bool {
	if dataflow.IsTimeChan(ch.Type()) {
		return true
	}
	if c, ok := ch.(*ssa.Call); ok {
		return endWord.MatchString(dataflow.CalleeName(c.Common()))
	}
	return endWord.MatchString(dataflow.ValueName(ch))
}
