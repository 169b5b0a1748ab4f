package retryloop

import (
	"go/constant"
	"go/token"
	"regexp"

	"golang.org/x/tools/go/ssa"
)

// Test is one branch on the failure of an operation of the loop.
type Test struct {
	If     *ssa.If
	Fail   int         // which successor a failure takes
	Ops    []*ssa.Call // the operations whose failure is tested
	Status bool        // the test looks at a status code, not at an error
	Bool   bool        // the test looks at a bool result
}

func (t *Test) fail() edge { return edge{t.If.Block(), t.Fail} }
func (t *Test) ok() edge   { return edge{t.If.Block(), 1 - t.Fail} }

var failureWord = regexp.MustCompile(`(?i)retr|tempor|transient|timeout|recoverable|^Is|^As$|conn.*(err|refused|reset)`)

// tests returns the failure tests of l. Those without Ops test something that
// no retry is about, such as a read of a body: their failure is no success.
func (f *finder) tests(l *Loop) []*Test {
	var found []*Test
	for _, b := range f.fn.Blocks {
		if !l.Blocks[b] {
			continue
		}
		i := ifOf(b)
		if i == nil {
			continue
		}
		if t := f.test(i, l); t != nil {
			found = append(found, t)
		}
	}
	return found
}

// test recognizes err != nil, errors.Is(err, x), retryable(err) and
// comparisons of status codes; nil for any other branch.
func (f *finder) test(i *ssa.If, l *Loop) *Test {
	cond, fail := i.Cond, 0
	for {
		n, ok := cond.(*ssa.UnOp)
		if !ok || n.Op != token.NOT {
			break
		}
		cond, fail = n.X, 1-fail
	}
	t := &Test{If: i, Fail: fail}
	switch c := cond.(type) {
	case *ssa.BinOp:
		x, y, op := c.X, c.Y, c.Op
		if isNil(x) {
			x, y = y, x
		}
		if isNil(y) && implementsError(x) {
			if op == token.EQL {
				t.Fail = 1 - fail
			} else if op != token.NEQ {
				return nil
			}
			t.Ops = f.opsOf(x, l)
			break
		}
		if implementsError(x) && implementsError(y) && (op == token.EQL || op == token.NEQ) { // err == io.EOF
			if op == token.NEQ {
				return nil
			}
			t.Ops = f.opsOf(x, l)
			break
		}
		failOnTrue, ok := statusTest(x, y, op)
		if !ok {
			return nil
		}
		if !failOnTrue {
			t.Fail = 1 - fail
		}
		t.Status = true
		if _, isConst := x.(*ssa.Const); isConst {
			x = y
		}
		t.Ops = f.statusOps(x, l)
	case *ssa.Call:
		if !failureWord.MatchString(calleeName(c.Common())) {
			return f.boolTest(c, t, l)
		}
		for _, a := range c.Common().Args {
			if implementsError(a) {
				t.Ops = append(t.Ops, f.opsOf(a, l)...)
			}
		}
		if len(t.Ops) == 0 {
			return nil
		}
	default:
		return nil
	}
	return t
}

// boolTest recognizes if c.send() { return }: an operation of a telling name
// that reports success as a bool.
func (f *finder) boolTest(c *ssa.Call, t *Test, l *Loop) *Test {
	if !l.contains(c) || !boolOp.MatchString(calleeName(c.Common())) || c.Common().Signature().Params().Len() > 6 {
		return nil
	}
	b := f.boundary(c)
	if b != Remote {
		return nil
	}
	t.Ops, t.Bool, t.Fail = []*ssa.Call{c}, true, 1-t.Fail
	return t
}

var boolOp = regexp.MustCompile(`(?i)^(try)?(send|post|publish|push|upload|deliver|submit|connect|reconnect|dial|fetch|download|call|do|write|register|notify)`)

func implementsError(v ssa.Value) bool { return isError(v.Type()) }

// opsOf returns the operations of l that may have produced the error v.
func (f *finder) opsOf(v ssa.Value, l *Loop) []*ssa.Call {
	var ops []*ssa.Call
	for _, c := range f.res.origins(v, l) {
		if !ignoredOp(c.Common()) && f.waitOf(c, l) == nil {
			ops = append(ops, c)
		}
	}
	return ops
}

// statusOps returns the operations that produced the response whose status v is.
func (f *finder) statusOps(v ssa.Value, l *Loop) []*ssa.Call {
	var ops []*ssa.Call
	for _, c := range f.res.origins(v, l) {
		if n := calleeName(c.Common()); n == "StatusCode" || n == "Code" {
			args := c.Common().Args
			if c.Common().IsInvoke() {
				args = []ssa.Value{c.Common().Value}
			}
			for _, a := range args {
				ops = append(ops, f.res.origins(a, l)...)
			}
			continue
		}
		ops = append(ops, c)
	}
	return ops
}

// statusTest reports whether "x op y" compares an HTTP status with a constant,
// and whether it being true means failure.
func statusTest(x, y ssa.Value, op token.Token) (failOnTrue, ok bool) {
	if _, isConst := x.(*ssa.Const); isConst {
		x, y, op = y, x, flip(op)
	}
	c, isConst := y.(*ssa.Const)
	if !isConst || !IsStatus(x) {
		return false, false
	}
	n, isInt := constInt(c)
	if !isInt || n < 100 || n > 600 {
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

// IsStatus reports whether v is the status code of a response: a field or a
// method named StatusCode.
func IsStatus(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		if fa, ok := v.X.(*ssa.FieldAddr); ok && v.Op == token.MUL {
			return fieldName(fa.X.Type(), fa.Field) == "StatusCode"
		}
	case *ssa.Field:
		return fieldName(v.X.Type(), v.Field) == "StatusCode"
	case *ssa.Call:
		return calleeName(v.Common()) == "StatusCode"
	case *ssa.Convert:
		return IsStatus(v.X)
	}
	return false
}

func constInt(c *ssa.Const) (int64, bool) {
	if c.Value == nil || c.Value.Kind() != constant.Int {
		return 0, false
	}
	return c.Int64(), true
}
