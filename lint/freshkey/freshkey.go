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

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Doc documents FB1031.
var Doc = &rule.Doc{
	ID:     "FB1031",
	Name:   "FreshKey",
	Title:  "a new idempotency key for each attempt",
	Remedy: "make the key once, before the first attempt, and send it with each one",
	Text: `An idempotency key identifies the operation, not the attempt: with a new key the
server takes each retry for a new order. Make the key before the first attempt.

Reported are keys that are made inside the region that is attempted again: in the loop, in a
helper that the loop calls, or in a function that a retry helper calls again.`,
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

// run looks in three places: in the region itself, one call deep in what it
// attempts, and in functions that a retry helper calls. Only pure regions count,
// since a consumer rightly makes a new key for each message.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if !r.Pure {
			continue
		}
		for in := range retryloop.Instrs[ssa.Instruction](r) {
			if key := keySet(in); key != nil && fresh(key, r.Contains, 0) {
				report(p, in, rule.Ops(r), mend.Key(p, r, in)...)
			}
		}
		// The helper that is attempted runs as a whole for each attempt.
		for _, op := range r.Ops {
			if fn := op.Common().StaticCallee(); fn != nil {
				if in := within(fn); in != nil {
					report(p, in, rule.Ops(r))
				}
			}
		}
	}
	// The helper's loop lies elsewhere, so that the message names the helper.
	for c, op := range p.RetriedCallbacks() {
		if in := within(op); in != nil {
			report(p, in, dataflow.Describe(c.Common()))
		}
	}
}

// report reports the place where the key is set: that is where it must not be
// made. op names what is attempted.
// Confidence is always high: a key and its generator in one attempt leave no
// doubt.
func report(p *rule.Pass, in ssa.Instruction, op string, fixes ...analysis.SuggestedFix) {
	p.Report(rule.Finding{
		Confidence: rule.High, Pos: in.Pos(), Function: rule.FunctionName(in.Parent()),
		Message: "makes a new idempotency key for each attempt of " + op, Fixes: fixes,
	})
}

// within returns the instruction of fn that sets a key made in fn itself.
// All of fn runs again with each attempt, so every generator in it is fresh. It
// returns nil when the key comes from outside, such as from a parameter or a
// captured variable.
func within(fn *ssa.Function) ssa.Instruction {
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		if key := keySet(in); key != nil && fresh(key, func(ssa.Instruction) bool { return true }, 0) {
			return in
		}
	}
	return nil
}

// keySet returns the key when in sets one: a header of that name, or a field.
// The value follows the name among the arguments, for http.Header and for the
// clients that copy it.
func keySet(in ssa.Instruction) ssa.Value {
	switch in := in.(type) {
	case *ssa.Call:
		name := dataflow.CalleeName(in.Common())
		if name != "Set" && name != "Add" && name != "SetHeader" && name != "AddHeader" {
			return nil
		}
		args := in.Common().Args
		// The last argument cannot be a name, as no value follows it.
		for i, a := range args[:max(len(args)-1, 0)] {
			if s, ok := dataflow.ConstString(a); ok && send.IsKeyName(s) {
				return args[i+1]
			}
		}
	case *ssa.Store:
		if name := dataflow.FieldOf(in.Addr); name != "" && send.IsKeyName(name) {
			return in.Val
		}
	}
	return nil
}

// maker marks calls that yield another value each time.
// A hash of the request is none of these: it yields the same key each time.
var maker = regexp.MustCompile(`(?i)uuid|ulid|ksuid|xid|nanoid|rand|^New(String|V[147]|Random)?$|generate|(new|make|next).*(key|id)$`)

// fresh reports whether v comes from a generator that is called inside.
// The walk goes through conversions, sums and variables, and ends after six
// steps. What it cannot follow counts as stable, which keeps the rule silent.
func fresh(v ssa.Value, inside func(ssa.Instruction) bool, depth int) bool {
	if depth > 6 {
		return false
	}
	deeper := func(v ssa.Value) bool { return fresh(v, inside, depth+1) }
	switch v := v.(type) {
	case *ssa.Call:
		if !inside(v) {
			return false
		}
		// The name of the package counts as well as that of the function.
		return maker.MatchString(dataflow.Describe(v.Common())) || slices.ContainsFunc(v.Common().Args, deeper)
	case *ssa.Extract, *ssa.Convert, *ssa.UnOp, *ssa.MakeInterface:
		return deeper(dataflow.Operand(v))
	case *ssa.BinOp:
		return deeper(v.X) || deeper(v.Y)
	case *ssa.Alloc:
		for s := range dataflow.Refs[*ssa.Store](v) {
			if s.Addr == ssa.Value(v) && inside(s) && deeper(s.Val) {
				return true
			}
		}
	}
	return false
}
