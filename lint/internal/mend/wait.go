package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// ceiling is where a doubled wait stops growing.
const ceiling = 30 * time.Second

// Jitter makes the waits of a region random, in the argument of each: of a
// sleep, of time.After, of a timer's Reset, of a helper that sleeps for what it
// is given. All of them are mended, or none: a single one that is left keeps the
// clients in step.
func Jitter(p *rule.Pass, r *retryloop.Region) []analysis.SuggestedFix {
	s, ok := siteOf(p, r)
	if !ok {
		return nil
	}
	var waits []*wait
	for _, w := range r.Waits {
		// A turn of several functions has its waits where it likes; what paces
		// successes too is not only a wait between attempts.
		if w.Instr.Parent() != r.Fn || r.AfterSuccess(w.Instr) && !r.Pure {
			return nil
		}
		class := classOf(p, r, w)
		if class == fact.Jittered {
			continue
		}
		arg := s.durationArg(w)
		if arg == nil || class != fact.Fixed && class != fact.Growing {
			return nil
		}
		if !slices.ContainsFunc(waits, func(o *wait) bool { return o.arg == arg }) {
			waits = append(waits, &wait{site: s, arg: arg, grows: class == fact.Growing, value: constantOf(w.D)})
		}
	}
	if len(waits) == 0 {
		return nil
	}
	var places []token.Pos
	for _, w := range waits {
		places = append(places, w.arg.Pos())
	}
	src := s.source(places)
	if src == nil {
		return nil
	}
	var edits []analysis.TextEdit
	message := ""
	for _, w := range waits {
		text, what := w.mended(src, s.counterOf(r.Node))
		if text == "" {
			return nil
		}
		edits = append(edits, analysis.TextEdit{Pos: w.arg.Pos(), End: w.arg.End(), NewText: []byte(pretty(text))})
		if message == "" {
			message = what
		}
	}
	return s.suggest(message, edits, src.imports()...)
}

// classOf says how one wait of a region develops. That of a recursion may grow by
// what the function passes to itself, which the region knows.
func classOf(p *rule.Pass, r *retryloop.Region, w *delay.Wait) fact.Class {
	if r.Loop == nil && len(r.Waits) == 1 {
		return r.Delay.Class
	}
	return delay.Classify(p.Known.Scope(r.Fn), w.D, r.Loop, r.Ops).Class
}

// wait is one wait that is mended.
type wait struct {
	site
	arg   ast.Expr
	grows bool
	value time.Duration // of a constant, or of a variable that holds just one; else zero
}

// durationArg finds the argument of a call that says how long a wait lasts. Only
// a plain argument will do, which stands for the parameter of the same number.
func (s site) durationArg(w *delay.Wait) ast.Expr {
	call := w.After
	if call == nil {
		call, _ = w.Instr.(*ssa.Call)
	}
	if call == nil || w.Ticker || w.D == nil || call.Common().Signature().Variadic() || !sleeps(call) {
		return nil
	}
	com := call.Common()
	i := slices.Index(com.Args, w.D)
	if com.Signature().Recv() != nil && !com.IsInvoke() {
		i-- // SSA has the receiver among the arguments
	}
	for _, n := range s.path(call.Pos()) {
		c, ok := n.(*ast.CallExpr)
		if !ok || c.Lparen != call.Pos() || i < 0 || len(c.Args) != com.Signature().Params().Len() {
			continue
		}
		if dataflow.IsDuration(s.TypesInfo.TypeOf(c.Args[i])) {
			return c.Args[i]
		}
	}
	return nil
}

// constantOf returns the value of a constant duration, or zero. A variable that
// is never changed is a constant in SSA.
func constantOf(v ssa.Value) time.Duration {
	n, _ := dataflow.ConstInt(v)
	return time.Duration(n)
}

// mended spells the random wait, and says what is different; "" when there is no
// way that certainly compiles.
func (w *wait) mended(src *source, c *counter) (text, what string) {
	base := w.text(w.arg)
	if base == "" || w.value < 0 || w.value > math.MaxInt64/2 || w.value == 0 && w.TypesInfo.Types[w.arg].Value != nil {
		return "", "" // a constant that no random wait can be made of
	}
	pos := w.arg.Pos()
	if w.untyped(base) {
		q := w.imported("time")
		if q == "" {
			return "", ""
		}
		base = q + ".Duration(" + base + ")"
	}
	if n := leading(w.arg); n != nil && n.Value == "1" { // 1 * time.Second
		base = w.text(w.arg.(*ast.BinaryExpr).Y)
	}
	if w.grows {
		return w.draw(src, pos, base, w.positive(w.arg, c)), Below
	}
	if base == w.text(w.arg) {
		base = w.operand(base)
	}
	if c != nil && w.resolves(c.name, pos) == c.obj {
		if x := w.doubled(base, c); x != "" && w.duration(pos, x) {
			if text := w.draw(src, pos, x, true); text != "" {
				return text, Doubles
			}
		}
	}
	x := "2 * " + base
	if n := leading(w.arg); n != nil && !w.untyped(w.text(w.arg)) {
		x = w.twice(n)
	}
	if !w.duration(pos, x) {
		return "", ""
	}
	return w.draw(src, pos, x, w.value > 0), Twice
}

// untyped reports whether an expression is a constant without a type: a plain
// number of nanoseconds, which would make the random number an int.
func (w *wait) untyped(x string) bool {
	tv, err := types.Eval(w.Fset, w.Pkg, w.arg.Pos(), x)
	return err == nil && tv.Value != nil && !dataflow.IsDuration(tv.Type)
}

// operand spells an expression so that it may stand beside * and <<.
func (w *wait) operand(x string) string {
	if b, ok := w.arg.(*ast.BinaryExpr); ok && b.Op != token.MUL {
		return "(" + x + ")"
	}
	return x
}

// doubled spells a ceiling that doubles with each turn; "" where it is not known
// to fit, or where it would not grow: the limits must be constants.
func (w *wait) doubled(base string, c *counter) string {
	q := w.imported("time")
	if w.value <= 0 || w.value > ceiling/2 || !c.known || c.last <= c.first {
		return ""
	}
	turns := c.last - c.first
	x := base + " << " + c.turn()
	if turns < 62 && w.value <= math.MaxInt64>>turns {
		switch {
		case w.value<<turns <= ceiling:
			return x
		case q != "" && w.predeclared(w.arg.Pos(), "min") && w.atLeast("go1.21"):
			return "min(30 * " + q + ".Second, " + x + ")"
		}
		return ""
	}
	// The shift would overflow, so that the exponent is held.
	if !w.predeclared(w.arg.Pos(), "min") || !w.atLeast("go1.21") {
		return ""
	}
	k := 0
	for w.value<<(k+1) <= ceiling {
		k++
	}
	return base + " << min(" + c.turn() + ", " + strconv.Itoa(k) + ")"
}

// leading returns the number at the left of a product: 5 of 5 * time.Second.
func leading(e ast.Expr) *ast.BasicLit {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.MUL {
		if n, ok := b.X.(*ast.BasicLit); ok && n.Kind == token.INT {
			return n
		}
	}
	return nil
}

// twice spells a product whose leading number is doubled.
func (w *wait) twice(n *ast.BasicLit) string {
	b := w.arg.(*ast.BinaryExpr)
	v, ok := w.constInt(n)
	if !ok {
		return ""
	}
	return strconv.FormatInt(2*v, 10) + " * " + w.text(b.Y)
}

// draw spells a random duration below x. What is not certainly positive is
// guarded: rand.N panics at zero, and the wait of before did not.
func (w *wait) draw(src *source, pos token.Pos, x string, positive bool) string {
	q := w.imported("time")
	switch {
	case src.v2 && positive:
		return src.name + ".N(" + x + ")"
	case src.v2 && w.predeclared(pos, "max"):
		return src.name + ".N(max(1, " + x + "))"
	case q == "" || !w.named(q, pos):
		return ""
	case positive && w.predeclared(pos, "int64"):
		return q + ".Duration(" + src.name + ".Int63n(int64(" + x + ")))"
	case w.predeclared(pos, "float64"):
		return q + ".Duration(" + src.name + ".Float64() * float64(" + x + "))"
	}
	return ""
}

// named reports whether a name is that of a package at pos.
func (s site) named(name string, pos token.Pos) bool {
	_, ok := s.resolves(name, pos).(*types.PkgName)
	return ok
}
