package retry

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Fact is what callers in other packages need to know of a function. The zero value
// is a function of which nothing is known.
type Fact struct {
	Boundary Boundary
	Wait     *FactWait
	Delay    Class // of a returned duration
	// Retrier is set for a function that calls a parameter again when it fails.
	Retrier *Retrier
	// HTTP says that a response decides about the error that the function returns, and
	// Fails for which statuses it does; GRPC and Codes say so of codes.
	HTTP, GRPC   bool
	Fails, Codes []int64
	// Yes and No hold for which statuses a predicate is certainly true, and false.
	Yes, No         []int64
	YesCode, NoCode []int64
	Sends           []FactSend
	// Attempts is set for a function that retries something itself: how many it makes,
	// or -1 where that is not constant.
	Attempts int
}

// FactWait says that a function waits: for a parameter, or of itself.
type FactWait struct {
	Param int // or -1
	Class Class
}

// Retrier says that a function calls a parameter again.
type Retrier struct {
	Param int
	Class Class
	Pure  bool // until it succeeds
	// Chooses says that the function looks at the error before it goes on.
	Chooses bool
}

// FactSend is a request that a function sends, by a method of its own or one that a
// parameter says.
type FactSend struct {
	Method string
	Param  int // or -1
	Keyed  bool
}

// AFact makes Fact a fact.
func (*Fact) AFact() {}

// fact is what is known of a function of another package, or nil.
func (p *Package) fact(c *ssa.CallCommon) *Fact {
	f := eval.Callee(c)
	if !ablate.On("facts") || f == nil || f.Pkg() == nil || f.Pkg() == p.SSA.Pkg {
		return nil
	}
	got := new(Fact)
	if p.Pass.ImportObjectFact == nil || !p.Pass.ImportObjectFact(f.Origin(), got) {
		return nil
	}
	return got
}

// Summarized implements eval.Library.
func (p *Package) Summarized(c *ssa.CallCommon) bool {
	f := p.fact(c)
	return f != nil && (f.HTTP || f.GRPC || len(f.Sends) > 0)
}

// Foreign implements eval.Library.
func (p *Package) Foreign(c *eval.Call) (v eval.Value, ok bool) {
	f := p.fact(c.CallCommon)
	if f == nil {
		return nil, false
	}
	if f.Wait != nil && !c.Deep {
		if f.Wait.Param >= 0 && f.Wait.Param < len(c.Args) {
			c.Wait(c.Args[f.Wait.Param])
		} else {
			c.Wait(sample(f.Wait.Class, c.Turn()))
		}
		ok = true
	}
	v = c.Plain()
	if c.Deep {
		for _, s := range f.Sends {
			snd := eval.Send{Method: eval.String(s.Method), Keyed: s.Keyed}
			if s.Param >= 0 && s.Param < len(c.Args) {
				snd.Method = c.MethodOf(c.Args[s.Param])
				snd.Keyed = snd.Keyed || c.KeyedBy(c.Args[s.Param])
			}
			c.Sends(snd)
		}
		switch s := c.Scene(); {
		case s.Outcome == eval.Answered && f.HTTP:
			c.Answers()
			if slices.Contains(f.Fails, s.Status) {
				return c.Result(), true
			}
			return v, true
		case s.Outcome == eval.Coded && f.GRPC:
			c.Answers()
			if slices.Contains(f.Codes, s.Status) {
				return c.Result(), true
			}
			return v, true
		case (s.Outcome == eval.Lost || s.Outcome == eval.Untrusted) && f.Boundary == Remote && fails(c.CallCommon):
			return c.Result(), true
		}
	}
	if f.Delay != Pluggable && c.Signature().Results().Len() == 1 {
		return sample(f.Delay, c.Turn()), true
	}
	if told := slices.ContainsFunc(c.Args, eval.Told); told && len(f.Yes)+len(f.No)+len(f.YesCode)+len(f.NoCode) > 0 && c.Signature().Results().Len() == 1 {
		s := c.Scene()
		yes, no := f.Yes, f.No
		if s.Outcome == eval.Coded {
			yes, no = f.YesCode, f.NoCode
		}
		if s.Outcome == eval.Answered || s.Outcome == eval.Coded {
			c.Answers()
			b := eval.Bool(slices.Contains(yes, s.Status))
			b.Told = true
			if slices.Contains(yes, s.Status) || slices.Contains(no, s.Status) {
				return b, true
			}
		}
		return eval.Unknown{Told: true}, true
	}
	return v, ok
}

// sample is a wait of a class, at one turn.
func sample(c Class, turn int) eval.Value {
	switch c {
	case Immediate:
		return eval.Int(0)
	case Fixed:
		return eval.Sym{Name: "the wait"}
	case Growing:
		return eval.Expr{Op: "grows", Args: []eval.Value{eval.Int(int64(turn))}}
	case EqualJitter, Jittered:
		return eval.Rand{}
	case Server:
		return eval.Server{}
	}
	return eval.Unknown{}
}

func isBool(t types.Type) bool {
	return eval.Is(t, types.IsBoolean)
}

// chooses reports whether a retry looks at the error of its operation before it goes
// on: not every failure is tried again.
func (p *Package) chooses(r *Retry) bool {
	m := p.Carry(r.Fn, r.Loop, r.Ops[0], eval.Scene{Outcome: eval.Answered, Status: 400})
	certain, _ := m.Again()
	return !certain || asksSentinel(r)
}

// asksSentinel reports whether a retry compares an error with one that its package
// exports: what it calls may end it by that.
func asksSentinel(r *Retry) bool {
	sentinel := func(v ssa.Value) bool {
		u, ok := v.(*ssa.UnOp)
		if !ok {
			return false
		}
		g, ok := u.X.(*ssa.Global)
		return ok && eval.IsError(v.Type()) && g.Pkg == r.Fn.Pkg
	}
	for b := range Instrs[*ssa.BinOp](r) {
		if sentinel(b.X) || sentinel(b.Y) {
			return true
		}
	}
	for c := range Instrs[*ssa.Call](r) {
		if CallsTo(c.Common(), "errors", "Is", "As") && slices.ContainsFunc(c.Common().Args, sentinel) {
			return true
		}
	}
	return false
}

// RetriesItself reports whether a call is one of a function of another package that retries
// something itself, and how many attempts it makes, or -1.
func (p *Package) RetriesItself(c *ssa.CallCommon) (attempts int, ok bool) {
	f := p.fact(c)
	if f == nil || f.Attempts == 0 {
		return 0, false
	}
	return f.Attempts, true
}
