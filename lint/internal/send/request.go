package send

import (
	"go/types"
	"slices"
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
		case *ssa.Alloc:
			for _, snd := range Literal(v) {
				sum.AddSend(snd)
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

// retryable is the library whose client has the names of net/http.
const retryable = "github.com/hashicorp/go-retryablehttp"

// directSend recognizes the calls that make a request of a known method. Reads
// are left out where they have functions of their own: only writes need a key.
// ok is false for any other call.
func directSend(c *ssa.CallCommon) (snd fact.Send, ok bool) {
	name, pkg := dataflow.CalleeName(c), dataflow.CalleePkg(c)
	client := pkg == "net/http" || pkg == retryable
	switch {
	case client && name == "NewRequest":
		snd.Method, snd.Param = MethodArg(c, 0)
	case client && name == "NewRequestWithContext":
		snd.Method, snd.Param = MethodArg(c, 1)
	case (client || pkg == "golang.org/x/net/context/ctxhttp") && (name == "Post" || name == "PostForm"):
		snd = fact.Send{Method: "POST", Param: -1}
	case dataflow.Under(pkg, "github.com/go-resty/resty") && (name == "Post" || name == "Patch") && dataflow.Receiver(c) == "Request":
		snd = fact.Send{Method: strings.ToUpper(name), Param: -1}
	default:
		return snd, false
	}
	return snd, snd.Method != "" || snd.Param >= 0
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
		return "", slices.Index(p.Parent().Params, p)
	}
	return "", -1
}

// Literal returns the requests that are made in place at a, by the constants
// that are stored in their Method: &http.Request{Method: "POST"}.
func Literal(a *ssa.Alloc) (found []fact.Send) {
	if !IsRequest(a.Type()) {
		return nil
	}
	for fa := range dataflow.Refs[*ssa.FieldAddr](a) {
		if dataflow.FieldOf(fa) != "Method" {
			continue
		}
		for s := range dataflow.Refs[*ssa.Store](fa) {
			if m, ok := dataflow.ConstString(s.Val); ok && s.Addr == ssa.Value(fa) {
				found = append(found, fact.Send{Method: strings.ToUpper(m), Param: -1})
			}
		}
	}
	return found
}

// IsRequest reports whether t is an HTTP request, or a pointer to one.
func IsRequest(t types.Type) bool {
	return dataflow.IsNamed(t, "net/http", "Request") || dataflow.IsNamed(t, retryable, "Request")
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
	if snd, ok := directSend(c); ok {
		snd.Keyed = keyed
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
		// The method is computed on the way: nothing is known of it any more.
		if snd.Method == "" && snd.Param < 0 {
			continue
		}
		snd.Depth++
		snd.Keyed = snd.Keyed || keyed
		sum.AddSend(snd)
	}
}
