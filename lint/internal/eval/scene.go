package eval

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Outcome is how the operation ends in a scene.
type Outcome int

// The outcomes.
const (
	Quiet     Outcome = iota // nothing is attempted: calls succeed
	Success                  // no error; a response has Status
	Lost                     // an error: the response was lost, or there was none
	Answered                 // a response or an error with Status
	Coded                    // an error with the gRPC code Status
	Untrusted                // an error of the certificate
)

// Scene is what is assumed while code is carried out.
type Scene struct {
	Outcome Outcome
	Status  int64 // of Success, Answered and Coded
	// Deep scenes carry out the operation itself, down to the calls that leave the
	// module; in the others it has the outcome as it stands.
	Deep bool
	// Method is what stands for a method that callers choose; "" leaves it open.
	Method string
}

// fails reports whether the operation does not succeed.
func (s Scene) fails() bool {
	switch s.Outcome {
	case Lost, Untrusted:
		return true
	case Answered:
		return s.Status >= 400
	case Coded:
		return s.Status != 0
	}
	return false
}

// result is what a call of the signature yields that has the outcome of the scene: a
// response and no error where a status came, an error otherwise. A response that comes
// beside another result, as that of a handshake does, is one of an error.
func (m *Machine) result(com *ssa.CallCommon) Value {
	res := com.Signature().Results()
	m.Answered = m.Answered || m.Scene.Outcome == Coded && isStub(com)
	answers := false
	for v := range res.Variables() {
		answers = answers || IsResponse(v.Type())
	}
	tup := Tuple{Of: make([]Value, res.Len())}
	hasError := false
	for i := range tup.Of {
		t := res.At(i).Type()
		switch {
		case IsResponse(t) && (m.Scene.Outcome == Answered || m.Scene.Outcome == Success):
			tup.Of[i] = Answer{}
			m.Answered = true
		case IsError(t):
			hasError = true
			if m.Scene.fails() && !(answers && res.Len() == 2 && m.Scene.Outcome == Answered) {
				tup.Of[i] = Failure{}
			} else {
				tup.Of[i] = Nil{}
			}
		default:
			tup.Of[i] = m.other(t, m.Scene.fails())
		}
	}
	if last := res.Len() - 1; !hasError && !answers && last >= 0 {
		// Without an error, a bool or a nil tells.
		at := 0
		if Is(res.At(last).Type(), types.IsBoolean) {
			at = last
		}
		tup.Of[at] = told(res.At(at).Type(), m.Scene.fails())
	}
	if len(tup.Of) == 1 {
		return tup.Of[0]
	}
	return tup
}

// isStub reports whether a call is one of gRPC: of a connection, or of generated code,
// whose last parameter is for options of calls.
func isStub(com *ssa.CallCommon) bool {
	sig := com.Signature()
	if !sig.Variadic() {
		return false
	}
	s, ok := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice)
	return ok && IsNamed(s.Elem(), "google.golang.org/grpc", "CallOption")
}

// told is what a result that alone tells success from failure is.
func told(t types.Type, failed bool) Value {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Kind() == types.Bool {
			c := Bool(!failed)
			c.Told = true
			return c
		}
	case *types.Pointer, *types.Interface, *types.Slice, *types.Map:
		if failed {
			return Nil{}
		}
		return Made{ID: "result", Told: true}
	}
	return Unknown{Told: true}
}

// other is a result beside the one that tells: nothing after a failure, anything
// after a success.
func (m *Machine) other(t types.Type, failed bool) Value {
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Interface:
		if failed {
			return Nil{}
		}
		return Made{ID: "result", Told: true}
	case *types.Basic:
		if failed && u.Info()&types.IsBoolean != 0 {
			return join(Const{V: Bool(false).V, Told: true}, Const{V: Bool(true).V, Told: true})
		}
	}
	return Unknown{Told: true}
}

// IsResponse reports whether t is a response of net/http, or a type of that name
// that holds a status.
func IsResponse(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	n, ok := types.Unalias(p.Elem()).(*types.Named)
	if !ok {
		return false
	}
	if n.Obj().Name() != "Response" {
		return false
	}
	if pkg := n.Obj().Pkg(); pkg != nil && pkg.Path() == "net/http" {
		return true
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, n.Obj().Pkg(), "StatusCode")
	return obj != nil
}

// errorType is the interface behind the type error.
var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// IsError reports whether t is error, or an interface or a pointer that is one.
func IsError(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Named:
		if u.Obj().Pkg() == nil {
			return u.Obj().Name() == "error"
		}
		return types.IsInterface(u) && types.Implements(u, errorType)
	case *types.Pointer:
		n, ok := types.Unalias(u.Elem()).(*types.Named)
		return ok && len(n.Obj().Name()) > 2 && types.Implements(u, errorType) && !IsResponse(t)
	}
	return false
}

// Is reports whether t is a basic type of a kind.
func Is(t types.Type, kind types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&kind != 0
}

// isRequest reports whether t is a request of net/http.
func isRequest(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && IsNamed(p.Elem(), "net/http", "Request")
}
