// Package freshkey reports idempotency keys that are made anew for each
// attempt (FB1031).
//
// Experimental: what this package exports may change in any version.
package freshkey

import (
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1031.
var Doc = &rule.Doc{
	ID:     "FB1031",
	Name:   "FreshKey",
	Title:  "a new idempotency key for each attempt",
	Remedy: "make the key once, before the first attempt, and send it with each one",
	Text: `An idempotency key identifies the operation, not the attempt: with a new key the server
treats each retry as a new order. Make the key before the first attempt.

Reported are keys made inside the repeated code: in the loop, in a helper that it calls, or in
a function that a retry helper calls again.`,
	Bad: `for range 3 {
	req.Header.Set("Idempotency-Key", uuid.NewString())
	...
}`,
	Good: `key := uuid.NewString()
for range 3 {
	req.Header.Set("Idempotency-Key", key)
	...
}`,
	Standard: "R-6",
}

// Analyzer finds keys that change between attempts.
var Analyzer = rule.New(Doc, run)

// run looks in three places: in the retry itself, one call deep in what it attempts,
// and in functions that a retry helper calls. Only what ends with a success counts,
// since a consumer rightly makes a new key for each message.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if !r.Pure {
			continue
		}
		for in := range retry.Instrs[ssa.Instruction](r) {
			if key := keySet(in); key != nil && fresh(key, r.Contains, 0) {
				report(p, in, r.OpNames(), mend.Key(p, r, in)...)
			}
		}
		for _, op := range r.Ops {
			if fn := op.Common().StaticCallee(); fn != nil {
				if in := within(fn); in != nil {
					report(p, in, r.OpNames())
				}
			}
		}
	}
	for _, h := range p.Handed() {
		if in := within(h.Fn); in != nil {
			report(p, in, retry.Describe(h.Call.Common()))
		}
	}
}

// report reports the place where the key is set. A key and its generator in one
// attempt leave no doubt.
func report(p *rule.Pass, in ssa.Instruction, op string, fixes ...analysis.SuggestedFix) {
	p.Report(rule.Finding{
		Confidence: rule.High, Pos: in.Pos(), Function: rule.FunctionName(in.Parent()),
		Message: "makes a new idempotency key for each attempt of " + op, Fixes: fixes,
	})
}

// within returns the instruction of fn that sets a key made in fn itself, or nil: all
// of fn runs again with each attempt.
func within(fn *ssa.Function) ssa.Instruction {
	for in := range retry.InstrsOf[ssa.Instruction](fn) {
		if key := keySet(in); key != nil && fresh(key, func(ssa.Instruction) bool { return true }, 0) {
			return in
		}
	}
	return nil
}

// keySet returns the key when in sets one: a header of that name, or a field. The
// value follows the name among the arguments.
func keySet(in ssa.Instruction) ssa.Value {
	switch in := in.(type) {
	case *ssa.Call:
		switch eval.CalleeName(in.Common()) {
		case "Set", "Add", "SetHeader", "AddHeader":
			args := in.Common().Args
			for i, a := range args[:max(len(args)-1, 0)] {
				if t := retry.Text(a); t != "" && rule.IsKeyName(t) {
					return args[i+1]
				}
			}
		}
	case *ssa.Store:
		if name := retry.FieldName(in.Addr); name != "" && rule.IsKeyName(name) {
			return in.Val
		}
	}
	return nil
}

// maker marks calls that yield another value each time. A hash of the request is none
// of these.
var maker = regexp.MustCompile(`(?i)uuid|ulid|ksuid|xid|nanoid|rand|^New(String|V[147]|Random)?$|generate|(new|make|next).*(key|id)$`)

// fresh reports whether v comes from a generator that is called inside. What cannot be
// followed counts as stable, which keeps the rule silent.
func fresh(v ssa.Value, inside func(ssa.Instruction) bool, depth int) bool {
	if depth > 6 {
		return false
	}
	deeper := func(v ssa.Value) bool { return fresh(v, inside, depth+1) }
	switch v := v.(type) {
	case *ssa.Call:
		return inside(v) && (maker.MatchString(retry.Describe(v.Common())) || slices.ContainsFunc(v.Common().Args, deeper))
	case *ssa.Extract:
		return deeper(v.Tuple)
	case *ssa.Convert:
		return deeper(v.X)
	case *ssa.UnOp:
		return deeper(v.X)
	case *ssa.MakeInterface:
		return deeper(v.X)
	case *ssa.BinOp:
		return deeper(v.X) || deeper(v.Y)
	case *ssa.Alloc:
		for _, ref := range *v.Referrers() {
			if s, ok := ref.(*ssa.Store); ok && s.Addr == ssa.Value(v) && inside(s) && deeper(s.Val) {
				return true
			}
		}
	}
	return false
}
