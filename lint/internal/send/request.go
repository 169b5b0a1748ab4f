package send

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Of returns the requests that operations of a function send: those of the
// functions behind them, and those that were built before and are handed to
// them.
func Of(s *fact.Scope, ops []*ssa.Call) []fact.Send {
	sum := &fact.Summary{}
	for _, op := range ops {
		Effects(s.Known, op.Common(), false, sum)
		for _, a := range op.Common().Args {
			requestArg(s, a, sum)
		}
	}
	return sum.Sends
}

// requestArg finds the call that built a request which an operation is given,
// and adds what it makes: client.Do(req) says nothing of the method, and
// http.NewRequest("POST", ...) does. Copies lead on to their original.
func requestArg(s *fact.Scope, v ssa.Value, sum *fact.Summary) {
	if p, ok := v.Type().(*types.Pointer); !ok || !IsRequest(p) {
		return
	}
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if v == nil || seen[v] || len(seen) > 40 {
			return
		}
		seen[v] = true
		switch v := v.(type) {
		case *ssa.Extract:
			visit(v.Tuple)
		case *ssa.Phi:
			for _, e := range v.Edges {
				visit(e)
			}
		case *ssa.UnOp:
			for _, st := range s.StoresTo(v.X) {
				visit(st.Val)
			}
		case *ssa.Alloc: // &http.Request{Method: "POST"}
			for _, st := range MethodStores(v) {
				if m, ok := dataflow.ConstString(st.Val); ok {
					sum.AddSend(fact.Send{Method: strings.ToUpper(m), Param: -1})
				}
			}
		case *ssa.Call:
			Effects(s.Known, v.Common(), false, sum)
			if n := dataflow.CalleeName(v.Common()); n == "WithContext" || n == "Clone" || n == "FromRequest" {
				for _, a := range v.Common().Args {
					visit(a)
				}
			}
		}
	}
	visit(v)
}

// directSend recognizes the calls that make a request of a known method. Reads
// are left out where they have functions of their own: only writes need a key.
func directSend(c *ssa.CallCommon) []fact.Send {
	name, pkg := dataflow.CalleeName(c), dataflow.CalleePkg(c)
	arg := -1
	switch {
	case pkg == "net/http" && name == "NewRequest", pkg == "github.com/hashicorp/go-retryablehttp" && name == "NewRequest":
		arg = 0
	case pkg == "net/http" && name == "NewRequestWithContext", pkg == "github.com/hashicorp/go-retryablehttp" && name == "NewRequestWithContext":
		arg = 1
	case (pkg == "net/http" || pkg == "golang.org/x/net/context/ctxhttp" || pkg == "github.com/hashicorp/go-retryablehttp") && (name == "Post" || name == "PostForm"):
		return []fact.Send{{Method: "POST", Param: -1}}
	case dataflow.Under(pkg, "github.com/go-resty/resty") && (name == "Post" || name == "Patch") && dataflow.Receiver(c) == "Request":
		return []fact.Send{{Method: strings.ToUpper(name), Param: -1}}
	default:
		return nil
	}
	method, param := MethodArg(c, arg)
	if method == "" && param < 0 {
		return nil
	}
	return []fact.Send{{Method: method, Param: param}}
}

// MethodArg reads the HTTP method from argument i of a call: a constant, or a
// parameter of the enclosing function, whose index it returns then. A method
// that is empty is GET, as net/http has it. One that is computed is neither.
func MethodArg(c *ssa.CallCommon, i int) (method string, param int) {
	if i >= len(c.Args) {
		return "", -1
	}
	a := dataflow.Strip(c.Args[i])
	if s, ok := dataflow.ConstString(a); ok {
		if s == "" {
			s = "GET"
		}
		return strings.ToUpper(s), -1
	}
	if p, ok := a.(*ssa.Parameter); ok {
		for n, q := range p.Parent().Params {
			if q == p {
				return "", n
			}
		}
	}
	return "", -1
}

// MethodStores returns the stores to the Method of a request that is made in
// place.
func MethodStores(a *ssa.Alloc) (found []*ssa.Store) {
	if !IsRequest(a.Type()) || a.Referrers() == nil {
		return nil
	}
	for _, ref := range *a.Referrers() {
		fa, ok := ref.(*ssa.FieldAddr)
		if !ok || dataflow.FieldName(fa.X.Type(), fa.Field) != "Method" {
			continue
		}
		for _, u := range *fa.Referrers() {
			if s, ok := u.(*ssa.Store); ok && s.Addr == ssa.Value(fa) {
				found = append(found, s)
			}
		}
	}
	return found
}

// IsRequest reports whether t is an HTTP request, or a pointer to one.
func IsRequest(t types.Type) bool {
	return dataflow.IsNamed(t, "net/http", "Request") || dataflow.IsNamed(t, "github.com/hashicorp/go-retryablehttp", "Request")
}

// Effects adds to sum what a call does beyond the program: where it goes, and
// which requests it sends itself or through functions that it calls. keyed says
// that an idempotency key is around it.
//
// A helper that takes the method as a parameter sends whatever its caller says;
// the parameter is replaced by the argument at each call on the way. Three calls
// deep is where guessing would begin.
func Effects(known *fact.Table, c *ssa.CallCommon, keyed bool, sum *fact.Summary) {
	switch direct(c) {
	case Remote:
		sum.Remote = true
	case Local:
		sum.Local = true
	}
	for _, snd := range directSend(c) {
		snd.Keyed = snd.Keyed || keyed
		sum.AddSend(snd)
	}
	inner := known.Of(c)
	if inner == nil {
		return
	}
	sum.Remote = sum.Remote || inner.Remote
	sum.Local = sum.Local || inner.Local
	for _, snd := range inner.Sends {
		if snd.Depth >= 3 {
			continue
		}
		if snd.Param >= 0 {
			snd.Method, snd.Param = MethodArg(c, snd.Param)
		}
		if snd.Method == "" && snd.Param < 0 {
			continue
		}
		snd.Depth++
		snd.Keyed = snd.Keyed || keyed
		sum.AddSend(snd)
	}
}
