package retryloop

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"
)

// statusOps returns the operations that produced the response whose status v is.
func statusOps(f *Func, v ssa.Value, l *Loop) []*ssa.Call {
	if s := hundreds(v); s != nil {
		v = s
	}
	var ops []*ssa.Call
	for _, c := range f.origins(v, l) {
		switch CalleeName(c.Common()) {
		case "StatusCode", "Code", "FromError", "Convert": // of a response, of an error, of the status of an error
			args := c.Common().Args
			if c.Common().IsInvoke() {
				args = []ssa.Value{c.Common().Value}
			}
			for _, a := range args {
				ops = append(ops, statusOps(f, a, l)...)
			}
		default:
			ops = append(ops, c)
		}
	}
	return ops
}

// comparison reports whether "x op y" compares a status or a code with a
// constant, and whether it being true means failure.
func comparison(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if failOnTrue, ok = statusTest(x, y, op); ok {
		return failOnTrue, ok
	}
	return codeTest(x, y, op)
}

// statusTest reports whether "x op y" compares an HTTP status with a constant,
// and whether it being true means failure.
func statusTest(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if _, isConst := x.(*ssa.Const); isConst {
		x, y, op = y, x, flip(op)
	}
	c, isConst := y.(*ssa.Const)
	if !isConst || !IsStatus(x) && !IsStatus(hundreds(x)) {
		return false, false
	}
	n, isInt := constInt(c)
	if !isInt {
		return false, false
	}
	if n < 10 && hundreds(x) != nil {
		n *= 100
	}
	if n < 100 || n > 600 {
		return false, false
	}
	switch op {
	case token.EQL:
		return n >= 300, true
	case token.NEQ:
		return n < 300, n < 300
	case token.GEQ, token.GTR:
		return true, n >= 299
	case token.LSS, token.LEQ:
		return false, n >= 299
	}
	return false, false
}

// hundreds returns s of s/100, the class of a status, and nil for anything
// else.
func hundreds(v ssa.Value) ssa.Value {
	b, ok := v.(*ssa.BinOp)
	if !ok || b.Op != token.QUO {
		return nil
	}
	if c, ok := b.Y.(*ssa.Const); !ok || c.Int64() != 100 {
		return nil
	}
	return b.X
}

// codeTest reports whether "x op y" compares a gRPC code with a constant, and
// whether it being true means failure.
func codeTest(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if _, isConst := x.(*ssa.Const); isConst {
		x, y = y, x
	}
	c, isConst := y.(*ssa.Const)
	if !isConst || !isCode(x) || op != token.EQL && op != token.NEQ {
		return false, false
	}
	if n, _ := constInt(c); n != 0 {
		return true, op == token.EQL // code != X may be a success
	}
	return op == token.NEQ, true
}

// statusPredicate recognizes a call of a function of this package that tells a
// success from an outage by the answer that it is given; nil for any other.
func (j *Judge) statusPredicate(sc *Scope, c *ssa.Call) (answer ssa.Value, failOnTrue bool) {
	if fn := static(c.Common()); fn == nil || len(fn.Blocks) == 0 || !j.known.own(fn) {
		return nil, false
	}
	for _, a := range c.Common().Args {
		if IsStatus(a) || IsNamed(a.Type(), "net/http", "Response") {
			answer = a
		}
	}
	if answer == nil {
		return nil, false
	}
	good, bad := j.world(sc, 200, false).predicate(c), j.world(sc, 503, false).predicate(c)
	if good == maybe || bad == maybe || good == bad {
		return nil, false
	}
	return answer, bad == yes
}

// statusField names fields and variables that hold the status of an answer
// besides the StatusCode of net/http.
var statusField = regexp.MustCompile(`(?i)^(http|resp|response)?_?status(_?code)?$|^(http|resp|response)_?code$|^code$`)

// IsStatus reports whether v is the status code of a response: a field or a
// method named StatusCode, or an integer field of a like name.
func IsStatus(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		if fa, ok := v.X.(*ssa.FieldAddr); ok && v.Op == token.MUL {
			return isStatusField(FieldName(fa.X.Type(), fa.Field), v.Type())
		}
	case *ssa.Field:
		return isStatusField(FieldName(v.X.Type(), v.Field), v.Type())
	case *ssa.Call:
		return CalleeName(v.Common()) == "StatusCode"
	case *ssa.Convert:
		return IsStatus(v.X)
	}
	return false
}

// isStatusField reports whether a field of that name and type holds a status:
// a plain integer, not an enumeration.
func isStatusField(name string, t types.Type) bool {
	if name == "StatusCode" {
		return true
	}
	_, basic := types.Unalias(t).(*types.Basic)
	return basic && isInteger(t) && statusField.MatchString(name)
}
