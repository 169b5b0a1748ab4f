package foreign

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// traefikBuffered is how many retries the middleware buffering makes at most, whatever
// its expression says (vulcand/oxy, DefaultMaxRetryAttempts).
const traefikBuffered = 10

// traefikBuffer judges the retryExpression of the middleware buffering. It is read for
// the responses that may come, as the middleware reads it after each attempt; what is
// not understood of it counts as true. It reports whether anything is sent again.
func (r *reader) traefikBuffer(d policyfile.Dependency, m *traefikRetry) bool {
	n := m.settings
	const longest = 1000 // of an expression that is worth reading
	expression, err := parser.ParseExpr(n.Text()[:min(len(n.Text()), longest)])
	known := err == nil
	retried := func(method string, status int) (count int) {
		for count < traefikBuffered {
			c := traefikCase{method: method, status: status, attempt: count + 1, known: &known}
			if err == nil && c.value(expression) == false {
				break
			}
			count++
		}
		return count
	}
	most, writes, pause := 0, false, false
	var terminal []string
	for status := http.StatusBadRequest; status < 600; status++ {
		get, post := retried(http.MethodGet, status), retried(http.MethodPost, status)
		most, writes = max(most, get, post), writes || post > 0
		again := get > 0 || post > 0
		pause = pause || again && traefikPause(strconv.Itoa(status))
		if text := strconv.Itoa(status); again && slices.Contains(never, text) {
			terminal = append(terminal, text)
		}
	}
	if most == 0 {
		return false
	}
	if retries(&d, most, n.At); !known {
		r.open(n.At, &d, "retryExpression of %s is not understood: what it sends again is not known", d.Name)
		terminal = nil
	}
	for _, status := range terminal {
		r.terminals(n.At, &d, status)
	}
	if writes {
		r.refuse(n.At, "R-6", &d, "methods", "retryExpression repeats POST, with or without an Idempotency-Key: have it ask for RequestMethod()")
	}
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
	unbounded(&d)
	r.cannot(&d, "R-1", "", "Traefik's middleware buffering sends a request again at once, without a wait")
	r.cannot(&d, "R-3", "total.missing", "Traefik's middleware buffering has nothing that bounds its retries in time")
	r.traefikLimits(&d, pause)
	return true
}

// traefikCase is an attempt and what came back, for which an expression is read.
type traefikCase struct {
	method          string
	status, attempt int
	known           *bool // false once something was not understood
}

// value returns a bool, an int or a string, or nil for what is not understood.
func (c traefikCase) value(e ast.Expr) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.value(e.X)
	case *ast.BasicLit:
		if n, err := strconv.Atoi(e.Value); err == nil {
			return n
		}
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.CallExpr:
		switch name, _ := e.Fun.(*ast.Ident); {
		case name == nil:
		case name.Name == "Attempts":
			return c.attempt
		case name.Name == "ResponseCode":
			return c.status
		case name.Name == "RequestMethod":
			return c.method
		case name.Name == "IsNetworkError":
			return c.status == http.StatusBadGateway || c.status == http.StatusGatewayTimeout
		}
	case *ast.BinaryExpr:
		x, y := c.value(e.X), c.value(e.Y)
		switch {
		case e.Op == token.LAND && (x == false || y == false):
			return false
		case e.Op == token.LOR && (x == true || y == true):
			return true
		case x == nil || y == nil:
			return nil
		case e.Op == token.LAND, e.Op == token.LOR: // each is true, or each is false
			return x
		}
		if v, ok := compare(e.Op, x, y); ok {
			return v
		}
	}
	*c.known = false
	return nil
}

// compare compares two numbers or two texts.
func compare(op token.Token, x, y any) (result, ok bool) {
	switch op {
	case token.EQL:
		return x == y, true
	case token.NEQ:
		return x != y, true
	}
	a, numberA := x.(int)
	b, numberB := y.(int)
	switch ok = numberA && numberB; op {
	case token.LSS:
		return a < b, ok
	case token.LEQ:
		return a <= b, ok
	case token.GTR:
		return a > b, ok
	case token.GEQ:
		return a >= b, ok
	}
	return false, false
}
