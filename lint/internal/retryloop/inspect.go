package retryloop

import (
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Each calls visit for every instruction of the region's loop (of the whole
// function, for a recursion).
func (r *Region) Each(visit func(ssa.Instruction)) {
	for _, b := range r.Fn.Blocks {
		if r.Loop != nil && !r.Loop.Blocks[b] {
			continue
		}
		for _, in := range b.Instrs {
			visit(in)
		}
	}
}

// Contains reports whether in belongs to the region's loop.
func (r *Region) Contains(in ssa.Instruction) bool {
	return r.Loop == nil || r.Loop.contains(in)
}

// Again reports whether another attempt may follow in.
func (r *Region) Again(in ssa.Instruction) bool {
	if !r.Loop.contains(in) {
		return false
	}
	_, back := r.Loop.walk(in.Block(), nil)
	return back || in.Block() == r.Loop.Header
}

// InFailedTurn reports whether in runs in a turn that fails: on the way to one
// of the region's failures, or after it.
func (r *Region) InFailedTurn(in ssa.Instruction) bool {
	for _, t := range r.Tests {
		succeeds := func(e edge) bool { return e == t.ok() }
		turn, _ := r.Loop.walkTurn(succeeds)
		if !turn[in.Block()] {
			continue
		}
		if in.Block() == r.Loop.Header && turn[t.If.Block()] {
			return true
		}
		after, _ := r.Loop.walk(t.fail().to(), nil)
		before, _ := r.Loop.walk(in.Block(), succeeds)
		if after[in.Block()] || before[t.If.Block()] {
			return true
		}
	}
	return false
}

// Origins returns the calls inside the region that v carries results of.
func (r *Region) Origins(v ssa.Value) []*ssa.Call { return r.f.origins(v, r.Loop) }

// StoresTo returns the stores to the variable at addr.
func (r *Region) StoresTo(addr ssa.Value) []*ssa.Store { return r.f.storesTo(addr) }

// Inside returns the region of the same function whose loop lies inside this
// one's and whose failure this one retries, or nil.
func (r *Region) Inside() *Region {
	if r.Loop == nil {
		return nil
	}
	for _, o := range r.f.regions() {
		if o == r || o.Loop == nil || !o.Pure || o.Loop == r.Loop {
			continue
		}
		for l := o.Loop.Parent; l != nil; l = l.Parent {
			if l == r.Loop {
				return o
			}
		}
	}
	return nil
}

// CalleeSummary returns what is known of the function behind a call of the
// region.
func (r *Region) CalleeSummary(c *ssa.Call) *Summary { return r.f.known.of(c.Common()) }

// Mentions reports whether the region's function, or a function of the package
// that the region calls, has a string constant, a field or a callee of a name
// that re matches.
func (r *Region) Mentions(re *regexp.Regexp) bool {
	seen := map[*ssa.Function]bool{}
	for fn := r.Fn; fn != nil; fn = fn.Parent() {
		if mentions(r.f.known, fn, re, seen, 3) {
			return true
		}
	}
	return false
}

func mentions(known *Table, fn *ssa.Function, re *regexp.Regexp, seen map[*ssa.Function]bool, depth int) bool {
	if fn == nil || seen[fn] {
		return false
	}
	seen[fn] = true
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.FieldAddr:
				if re.MatchString(FieldName(in.X.Type(), in.Field)) {
					return true
				}
			case *ssa.Field:
				if re.MatchString(FieldName(in.X.Type(), in.Field)) {
					return true
				}
			case ssa.CallInstruction:
				c := in.Common()
				if re.MatchString(CalleeName(c)) {
					return true
				}
				if g := static(c); g != nil && depth > 0 && len(g.Blocks) > 0 && known.own(g) && mentions(known, g, re, seen, depth-1) {
					return true
				}
			}
			for _, op := range in.Operands(nil) {
				if *op == nil {
					continue
				}
				if str, ok := ConstString(*op); ok && re.MatchString(str) {
					return true
				}
				if f, ok := (*op).(*ssa.Function); ok && re.MatchString(f.Name()) {
					return true
				}
			}
		}
	}
	return false
}

// Responses returns the operations of the region that yield an HTTP response.
func (r *Region) Responses() []*ssa.Call {
	var found []*ssa.Call
	for _, c := range r.Ops {
		res := c.Common().Signature().Results()
		if res.Len() > 0 && IsNamed(res.At(0).Type(), "net/http", "Response") {
			found = append(found, c)
		}
	}
	return found
}

// CheckedLate reports whether the region's counter is tested only at the head
// or at the foot of the loop, so that the wait after the last failure leads to
// no attempt.
func (r *Region) CheckedLate() bool {
	if r.Loop == nil || !r.Bound.Counter || r.WaitFirst || len(r.Waits) == 0 {
		return false
	}
	var count *ssa.BasicBlock // the only block that looks at the counter
	for b := range r.Loop.Blocks {
		i := ifOf(b)
		if i == nil || !countsIn(r.f.Func, i.Cond, r.Loop) {
			continue
		}
		if count != nil {
			return false
		}
		count = b
	}
	if count == nil {
		return false
	}
	if count != r.Loop.Header && !r.waitsBefore(count) {
		return false
	}
	for _, w := range r.Waits {
		for _, op := range r.Ops {
			if w.Instr.Block() != op.Block() && !op.Block().Dominates(w.Instr.Block()) {
				return false
			}
		}
	}
	return true
}

// waitsBefore reports whether a wait comes before block b in every turn: b is
// the foot of the loop.
func (r *Region) waitsBefore(b *ssa.BasicBlock) bool {
	for _, w := range r.Waits {
		if w.Instr.Block() == b || w.Instr.Block().Dominates(b) {
			return true
		}
	}
	return false
}

// countsIn reports whether a condition compares a counter of l.
func countsIn(f *Func, v ssa.Value, l *Loop) bool {
	b, ok := v.(*ssa.BinOp)
	return ok && (counter(f, b.X, l, 0) || counter(f, b.Y, l, 0))
}

// sdks are clients that retry by themselves, with the attempts that they make
// by default.
var sdks = []struct {
	pkg      string
	attempts int
}{
	{"github.com/aws/aws-sdk-go-v2/service", 3},
	{"github.com/aws/aws-sdk-go/service", 4},
	{"github.com/hashicorp/go-retryablehttp", 5},
	{"github.com/minio/minio-go", 10},
	{"github.com/stripe/stripe-go", 3},
	{"github.com/Azure/azure-sdk-for-go/sdk", 4},
	{"github.com/hetznercloud/hcloud-go", 5},
	{"github.com/cloudflare/cloudflare-go", 4},
	{"github.com/openai/openai-go", 3},
	{"github.com/anthropics/anthropic-sdk-go", 3},
}

// RetryingSDK returns the number of attempts that the client behind c makes by
// default, when it is known to retry.
func RetryingSDK(c *ssa.CallCommon) (attempts int, ok bool) {
	pkg := CalleePkg(c)
	for _, s := range sdks {
		if strings.HasPrefix(pkg, s.pkg) && len(c.Signature().Params().String()) > 0 {
			return s.attempts, true
		}
	}
	return 0, false
}

// InspectsError reports whether the region looks into the errors of its
// operations before it tries again: errors.Is, a predicate, a type assertion, a
// comparison of texts.
func (r *Region) InspectsError() bool {
	found := false
	r.Each(func(in ssa.Instruction) {
		switch in := in.(type) {
		case *ssa.TypeAssert:
			found = found || isError(in.X.Type())
		case *ssa.Call:
			com := in.Common()
			if com.IsInvoke() && com.Method.Name() == "Error" {
				found = found || tested(in)
				return
			}
			for _, a := range com.Args {
				if isError(a.Type()) && tested(in) {
					found = true
				}
			}
		}
	})
	return found
}

// tested reports whether the result of c, or a part of it, is branched on.
func tested(v ssa.Value) bool {
	if v.Referrers() == nil {
		return false
	}
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		case *ssa.If:
			return true
		case *ssa.BinOp:
			if tested(ref) {
				return true
			}
		case *ssa.UnOp:
			if tested(ref) {
				return true
			}
		case *ssa.Extract:
			if tested(ref) {
				return true
			}
		}
	}
	return false
}

// OnStatus reports whether a branch of the region itself looks at a status.
func (r *Region) OnStatus() bool {
	for _, t := range r.Tests {
		if t.Status {
			return true
		}
	}
	return false
}
