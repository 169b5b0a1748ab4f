package status

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Comparison reports whether "x op y" compares a status or a code with a
// constant, and whether it being true means failure.
// It is the test of a failure in code that has a response and no error.
func Comparison(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if failOnTrue, ok = statusTest(x, y, op); ok {
		return failOnTrue, ok
	}
	return codeTest(x, y, op)
}

// statusTest reports whether "x op y" compares an HTTP status with a constant,
// and whether it being true means failure. A comparison that leaves both sides
// open is none: "not 404" may be a success or another failure.
// The constant may stand on either side.
func statusTest(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if dataflow.IsConst(x) {
		x, y, op = y, x, dataflow.Flip(op)
	}
	n, isInt := dataflow.ConstInt(y)
	if !isInt || !IsStatus(x) && !IsStatus(hundreds(x)) {
		return false, false
	}
	// status/100 == 4 compares classes.
	if n < 10 && hundreds(x) != nil {
		n *= 100
	}
	// Fields that are called code hold other numbers too.
	if n < 100 || n > 600 {
		return false, false
	}
	// Equality with a failure, or inequality with a success, is a failure. An
	// order is one when its limit lies at the first failure or above.
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

// codeTest reports whether "x op y" compares a gRPC code with a constant, and
// whether it being true means failure.
// OK is 0, and every other code is a failure. Codes have no order, so that only
// equality counts.
func codeTest(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if dataflow.IsConst(x) {
		x, y = y, x
	}
	if !dataflow.IsConst(y) || !isCode(x) || op != token.EQL && op != token.NEQ {
		return false, false
	}
	if n, _ := dataflow.ConstInt(y); n != 0 {
		return true, op == token.EQL // code != X may be a success
	}
	return op == token.NEQ, true
}

// Sources returns the operations of l that produced the response whose status v
// is, or the error whose code v is.
// It looks through the functions that take a status out of an error.
func Sources(f *dataflow.Func, v ssa.Value, l *dataflow.Loop) []*ssa.Call {
	if s := hundreds(v); s != nil {
		v = s
	}
	var ops []*ssa.Call
	for _, c := range f.Origins(v, l) {
		switch dataflow.CalleeName(c.Common()) {
		case "StatusCode", "Code", "FromError", "Convert": // of a response, of an error, of the status of an error
			args := c.Common().Args
			if c.Common().IsInvoke() {
				args = []ssa.Value{c.Common().Value}
			}
			for _, a := range args {
				ops = append(ops, Sources(f, a, l)...)
			}
		default:
			ops = append(ops, c)
		}
	}
	return ops
}

// Predicate recognizes a call of a function of this package that tells a success
// from an outage by the response, or the status, that it is given. It returns
// that argument, and whether true means failure; nil for any other call.
//
// The function is run for a 200 and a 503: where both are certain and differ, it
// is such a predicate, whatever its name.
func (j *Judge) Predicate(sc *fact.Scope, c *ssa.Call) (resp ssa.Value, failOnTrue bool) {
	if j.known.Body(c.Common()) == nil {
		return nil, false
	}
	for _, a := range c.Common().Args {
		if IsStatus(a) || dataflow.IsNamed(a.Type(), "net/http", "Response") {
			resp = a
		}
	}
	if resp == nil {
		return nil, false
	}
	good, bad := j.world(sc, 200, false).predicate(c), j.world(sc, 503, false).predicate(c)
	if good == maybe || bad == maybe || good == bad {
		return nil, false
	}
	return resp, bad == yes
}
