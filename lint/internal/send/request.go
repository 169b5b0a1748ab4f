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
		Effects(s.Known, op, false, sum)
		if answers(op.Common()) {
			continue
		}
		// client.Do(req) says nothing of the method; where req was built does.
		for _, a := range op.Common().Args {
			if p, ok := a.Type().(*types.Pointer); !ok || !IsRequest(p) {
				continue
			}
			for _, snd := range Methods(s, a) {
				sum.AddSend(snd)
			}
		}
	}
	return sum.Sends
}

// answers reports whether a call is handed a request of a client to answer it,
// and what it sends for that is its own affair. A handler that is called again
// carries the request out again.
func answers(c *ssa.CallCommon) bool {
	return dataflow.CalleeName(c) != "ServeHTTP" && slices.ContainsFunc(c.Args, func(a ssa.Value) bool {
		return dataflow.IsNamed(a.Type(), "net/http", "ResponseWriter")
	})
}

// The clients whose requests are those of net/http, or have its names.
const (
	retryable = "github.com/hashicorp/go-retryablehttp"
	fast      = "github.com/valyala/fasthttp"
	resty     = "github.com/go-resty/resty"
)

// directSends returns the requests that a call makes or sends by itself, by the
// library that it calls or by its signature. Reads are left out where they have
// functions of their own: only writes need a key.
func directSends(known *fact.Table, call *ssa.Call) []fact.Send {
	c := call.Common()
	name, pkg := dataflow.CalleeName(c), dataflow.CalleePkg(c)
	client := pkg == "net/http" || pkg == retryable
	post := []fact.Send{{Method: "POST", Param: -1}}
	var decides ssa.Value
	switch {
	case client && strings.HasPrefix(name, "NewRequest"):
		if i := builtBy(c); i >= 0 {
			decides = c.Args[i]
		}
	case (client || pkg == "golang.org/x/net/context/ctxhttp") && (name == "Post" || name == "PostForm"),
		pkg == fast && name == "Post":
		return post
	case dataflow.Under(pkg, resty) && dataflow.Receiver(c) == "Request":
		switch {
		case name == "Post" || name == "Patch":
			return []fact.Send{{Method: strings.ToUpper(name), Param: -1}}
		case name == "Execute" && len(c.Args) > 1:
			decides = c.Args[1]
		}
	case known.Body(c) == nil:
		decides = sent(c)
	}
	if decides == nil || call.Parent() == nil {
		return nil
	}
	found := Methods(known.Scope(call.Parent()), decides)
	for i := range found {
		found[i].Body = found[i].Body || givenBody(c)
	}
	return found
}

// givenBody reports whether c makes a request that has a body, or may have one.
func givenBody(c *ssa.CallCommon) bool {
	if builtBy(c) < 0 || !strings.HasPrefix(dataflow.CalleeName(c), "NewRequest") {
		return false
	}
	body := c.Args[len(c.Args)-1]
	if m, ok := body.(*ssa.MakeInterface); ok {
		body = m.X
	}
	return !dataflow.IsNil(body) && dataflow.ValueName(body) != "NoBody"
}

// sent returns the request that a call sends although its body is not known, by
// its signature: a client takes a request and yields the response, and a handler
// takes both.
func sent(c *ssa.CallCommon) ssa.Value {
	name, pkg := dataflow.CalleeName(c), dataflow.CalleePkg(c)
	if name == "ReadResponse" {
		return nil
	}
	if name != "ServeHTTP" && !(pkg == fast && strings.HasPrefix(name, "Do")) && !Yields(c) {
		return nil
	}
	i := slices.IndexFunc(c.Args, func(a ssa.Value) bool {
		_, isPointer := a.Type().(*types.Pointer)
		return isPointer && IsRequest(a.Type())
	})
	if i < 0 {
		return nil
	}
	return c.Args[i]
}

// IsResponse reports whether t is an HTTP response, or a pointer to one.
func IsResponse(t types.Type) bool { return dataflow.IsNamed(t, "net/http", "Response") }

// Yields reports whether the first result of a call is a response.
func Yields(c *ssa.CallCommon) bool { return IsResponse(resultType(c)) }

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
	return dataflow.TypeName(t) == "Request" && (dataflow.TypePkg(t) == "net/http" || dataflow.TypePkg(t) == retryable || dataflow.TypePkg(t) == fast)
}

// Effects adds to sum what a call does beyond the program: where it goes, and
// which requests it sends itself or through functions that it calls. keyed says
// that an idempotency key is around it.
//
// A helper that takes the method, or the request, as a parameter sends whatever
// its caller says; the parameter is replaced by the argument at each call on the
// way.
func Effects(known *fact.Table, call *ssa.Call, keyed bool, sum *fact.Summary) {
	c := call.Common()
	switch direct(c) {
	case Remote:
		sum.Remote = true
	case Local:
		sum.Local = true
	}
	for _, snd := range directSends(known, call) {
		snd.Keyed = keyed
		sum.AddSend(snd)
	}
	for _, a := range c.Args {
		if fn, _ := dataflow.FuncValue(a); fn != nil {
			for _, snd := range handed(known, fn) {
				snd.Keyed = snd.Keyed || keyed
				sum.AddSend(snd)
			}
		}
	}
	if fn := known.Handed(c); fn != nil {
		sum.Remote = sum.Remote || known.Local(fn).Remote
	}
	if inner := known.Implementing(c); inner != nil {
		for _, snd := range Through(known, call, inner.Sends) {
			snd.Keyed = snd.Keyed || keyed
			sum.AddSend(snd)
		}
	}
	inner := known.Of(c)
	if inner == nil {
		return
	}
	sum.Remote = sum.Remote || inner.Remote
	sum.Local = sum.Local || inner.Local
	for _, snd := range Through(known, call, inner.Sends) {
		snd.Keyed = snd.Keyed || keyed
		sum.AddSend(snd)
	}
}

// handed returns the requests that a literal sends, as the function that makes it
// sees them. What is given a literal runs it, as a rule: a breaker, a timer, a
// helper that retries.
func handed(known *fact.Table, fn *ssa.Function) (seen []fact.Send) {
	if !known.Own(fn) || len(fn.Blocks) == 0 || fn.Parent() == nil {
		return nil
	}
	for _, snd := range known.Local(fn).Sends {
		if snd.Depth >= maxDepth || snd.Method == "" && snd.Outer == 0 {
			continue
		}
		snd.Depth++
		snd.Outer = max(snd.Outer-1, 0)
		seen = append(seen, snd)
	}
	return seen
}

// maxDepth is how many calls deep a request is looked for. Farther away is where
// guessing would begin.
const maxDepth = 5

// Through returns requests that a function sends as the caller sees them, which
// calls it by call: with its arguments in the place of parameters. A request
// whose method is lost on the way is left out.
func Through(known *fact.Table, call *ssa.Call, sends []fact.Send) (seen []fact.Send) {
	for _, snd := range sends {
		if snd.Depth >= maxDepth {
			continue
		}
		snd.Depth++
		switch {
		case snd.Method != "":
			seen = append(seen, snd)
		case snd.Outer > 0:
			// A literal that was made here sees the parameters of this function.
			if fn := dataflow.Static(call.Common()); fn != nil && fn.Parent() == call.Parent() {
				snd.Outer--
				seen = append(seen, snd)
			}
		case snd.Param >= 0 && snd.Param < len(call.Common().Args):
			for _, m := range Methods(known.Scope(call.Parent()), call.Common().Args[snd.Param]) {
				m.Depth += snd.Depth
				m.Keyed = m.Keyed || snd.Keyed
				m.Reads = m.Reads || snd.Reads
				m.Told = snd.Told
				// A nil may well stand in the place of the body.
				m.Body = m.Body || snd.Body && !slices.ContainsFunc(call.Common().Args, dataflow.IsNil)
				seen = append(seen, m)
			}
		}
	}
	return seen
}
