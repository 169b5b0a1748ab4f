package retryloop

import (
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Harmless reports whether the region tries again only what was not carried out:
// what a server refused by its status or for a reason that the code knows, such as
// a conflict, or what was not sent, since no connection came about. Repeating such a
// write does no harm.
func (r *Region) Harmless() bool {
	if r.Loop == nil {
		return false
	}
	unsent := map[dataflow.Edge]bool{}
	for i := range Instrs[*ssa.If](r) {
		if side := r.f.unsentSide(i.Cond, 0); side >= 0 {
			unsent[dataflow.Edge{From: i.Block(), I: side}] = true
		}
	}
	onStatus := false
	for _, t := range r.Tests {
		if t.Status {
			onStatus = true
			continue
		}
		if unsent[t.fail()] {
			continue
		}
		// Without the ways that only unsent requests take, a failure must not lead
		// to another attempt.
		if _, again := r.Loop.Walk(t.fail().To(), func(e dataflow.Edge) bool { return unsent[e] }); again {
			return false
		}
	}
	if !onStatus {
		return true
	}
	again, _ := r.RetriedStatuses(false)
	return !again.Empty() && again.Minus(refused).Empty()
}

// refused are the statuses by which a server says that it has not carried out a
// request, RFC 9110, 15.5. After 408 it may have begun.
var refused = codeset.Range(400, 499).Minus(codeset.Of(408))

var (
	// unsentWord marks predicates and errors that say that nothing was sent, or that
	// the server has said why it did nothing.
	unsentWord = regexp.MustCompile(`(?i)dial|(conn|connection).?refused|unsent|not.?sent|unprocessed|go.?away|before.?sen[dt]|no.?such.?host|handshake.?timeout|` +
		`exist|conflict|rate.?limit|too.?many|throttl|unauthorized|expired|stale|locked|precondition`)
	// unsentText marks what their texts say.
	dnsError   = regexp.MustCompile(`\bnet\.DNSError$`)
	unsentText = regexp.MustCompile(`(?i)connection refused|no such host|TLS handshake timeout|network is unreachable|no route to host|^dial$|^dial `)
)

// unsentErrno are the errors of the system for a connection that did not come
// about.
var unsentErrno = []string{"ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN", "WSAECONNREFUSED"}

// unsentSide returns the side of a branch that only requests take which were not
// carried out, or -1.
func (f *finder) unsentSide(cond ssa.Value, depth int) int {
	if depth > 4 {
		return -1
	}
	switch c := cond.(type) {
	case *ssa.UnOp:
		if side := f.unsentSide(c.X, depth+1); c.Op == token.NOT && side >= 0 {
			return 1 - side
		}
	case *ssa.BinOp: // op.Op == "dial"
		for _, v := range []ssa.Value{c.X, c.Y} {
			s, ok := dataflow.ConstString(v)
			said := ok && unsentText.MatchString(s) || unsentError(v)
			switch {
			case said && c.Op == token.EQL:
				return 0
			case said && c.Op == token.NEQ:
				return 1
			}
		}
	case *ssa.Call:
		if f.saysUnsent(c) {
			return 0
		}
	case *ssa.Extract: // of errors.AsType, or a type assertion
		switch x := c.Tuple.(type) {
		case *ssa.Call:
			if f.saysUnsent(x) {
				return 0
			}
		case *ssa.TypeAssert:
			if implementsError(x.X) && saysUnsentType(x.AssertedType) {
				return 0
			}
		}
	}
	return -1
}

// saysUnsent reports whether a predicate is true only for what was not carried out: by
// its name when it is given an error, by the error that it looks for, or by the
// text. A function of the package that is true for other errors too, such as
// isRefusedOrReset, is taken at its name; there is no saying what it means.
func (f *finder) saysUnsent(c *ssa.Call) bool {
	com := c.Common()
	if err, t := dataflow.Sought(com); err != nil {
		return saysUnsentType(t)
	}
	switch name, pkg := dataflow.CalleeName(com), dataflow.CalleePkg(com); {
	case name == "Is" && len(com.Args) == 2 && implementsError(com.Args[0]):
		return unsentError(com.Args[1])
	case pkg == "strings" && len(com.Args) == 2:
		s, ok := dataflow.ConstString(com.Args[1])
		return ok && unsentText.MatchString(s)
	default:
		return unsentWord.MatchString(name) && slices.ContainsFunc(com.Args, implementsError)
	}
}

// saysUnsentType reports whether errors of a type say that, by its name.
func saysUnsentType(t types.Type) bool {
	return dnsError.MatchString(t.String()) || unsentWord.MatchString(dataflow.TypeName(t))
}

// unsentError reports whether v is one of the errors of the system that say that
// no connection came about.
func unsentError(v ssa.Value) bool {
	if m, ok := v.(*ssa.MakeInterface); ok {
		v = m.X
	}
	if u, ok := v.(*ssa.UnOp); ok {
		return unsentWord.MatchString(dataflow.ValueName(u.X))
	}
	c, ok := v.(*ssa.Const)
	n, named := v.Type().(*types.Named)
	if !ok || !named || c.Value == nil || n.Obj().Pkg() == nil {
		return false
	}
	return slices.ContainsFunc(unsentErrno, func(name string) bool {
		known, ok := n.Obj().Pkg().Scope().Lookup(name).(*types.Const)
		return ok && constant.Compare(known.Val(), token.EQL, c.Value)
	})
}
