package send

import (
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// keyWord marks a header, a field or a variable as an idempotency key; so do
// the names that a user has set.
const keyWord = "idempoten"

var keyNames atomic.Pointer[[]string]

// IsKeyName reports whether a header or field name is that of an idempotency
// key.
func IsKeyName(s string) bool {
	s = strings.ToLower(s)
	if strings.Contains(s, keyWord) {
		return true
	}
	names := keyNames.Load()
	return names != nil && slices.ContainsFunc(*names, func(n string) bool { return strings.Contains(s, n) })
}

// SetKeyNames sets the header names that a user's servers read keys from,
// instead of those set before. It must be called before any analysis runs.
func SetKeyNames(names ...string) {
	lower := make([]string, 0, len(names))
	for _, n := range names {
		lower = append(lower, strings.ToLower(n))
	}
	keyNames.Store(&lower)
}

// MentionsKey reports whether fn sets or carries an idempotency key: a string
// constant, a field or a callee of that name. It errs on the side of silence.
func MentionsKey(fn *ssa.Function) bool {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.FieldAddr:
				if IsKeyName(dataflow.FieldName(in.X.Type(), in.Field)) {
					return true
				}
			case *ssa.Call:
				if IsKeyName(dataflow.CalleeName(in.Common())) {
					return true
				}
			}
			for _, op := range in.Operands(nil) {
				if *op == nil {
					continue
				}
				if s, ok := dataflow.ConstString(*op); ok && len(s) < 200 && IsKeyName(s) {
					return true
				}
				if g, ok := (*op).(*ssa.Global); ok && IsKeyName(g.Name()) {
					return true
				}
			}
		}
	}
	return false
}

func Keyed(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if MentionsKey(fn) {
			return true
		}
	}
	return false
}
