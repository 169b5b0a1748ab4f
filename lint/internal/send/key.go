package send

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// keyWord marks a header, a field or a variable as an idempotency key; so do
// the names that a user has set.
const keyWord = "idempoten"

// IsKeyName reports whether a header or field name is that of an idempotency
// key: by the field's word, or by the settings.
// Upper and lower case are the same, since header names do not tell them apart.
func IsKeyName(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, keyWord) ||
		slices.ContainsFunc(config.Current().KeyHeaders, func(name string) bool { return strings.Contains(s, strings.ToLower(name)) })
}

// requestID marks headers that name a request.
var requestID = regexp.MustCompile(`(?i)^(x-)?([a-z0-9]+-)*request-?id$`)

// SetsRequestID reports whether an instruction sets a header that names a
// request: by a call that is given the name and a value, or in a map.
func SetsRequestID(in ssa.Instruction) bool {
	named := func(v ssa.Value) bool {
		s, ok := dataflow.ConstString(v)
		return ok && strings.Contains(s, "-") && requestID.MatchString(s)
	}
	switch in := in.(type) {
	case *ssa.MapUpdate:
		return named(in.Key)
	case *ssa.Call:
		args := in.Common().Args
		return headerSetter.MatchString(dataflow.CalleeName(in.Common())) && len(args) > 1 && slices.ContainsFunc(args[:len(args)-1], named)
	}
	return false
}

// headerSetter marks the names of calls that set a header.
var headerSetter = regexp.MustCompile(`^(Set|Add|With|set|add|with)`)

// MentionsKey reports whether fn sets or carries an idempotency key: a string
// constant, a field or a callee of that name. It errs on the side of silence. A
// question, such as isIdempotent(method), is no key.
// A text of 200 bytes or more is no header's name.
func MentionsKey(fn *ssa.Function) bool {
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		name := ""
		switch in := in.(type) {
		case *ssa.FieldAddr:
			if v := dataflow.FieldVar(in); v == nil || !dataflow.IsBool(v.Type()) {
				name = dataflow.FieldOf(in)
			}
		case *ssa.Call:
			if !dataflow.IsBool(in.Type()) {
				name = dataflow.CalleeName(in.Common())
			}
		}
		if name != "" && IsKeyName(name) {
			return true
		}
		for _, op := range in.Operands(nil) {
			// A long text, such as a help page, mentions keys without setting one.
			if s, ok := dataflow.ConstString(*op); ok && len(s) < 200 && IsKeyName(s) {
				return true
			}
			if g, ok := (*op).(*ssa.Global); ok && IsKeyName(g.Name()) {
				return true
			}
		}
	}
	return false
}

// Keyed reports whether fn, or a function around it, mentions an idempotency
// key. A literal that is retried sends the headers that its surroundings set.
func Keyed(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if MentionsKey(fn) {
			return true
		}
	}
	return false
}
