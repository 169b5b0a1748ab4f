// Package bypassed reports retry clients that are built and then not used for
// the requests (FB1050).
//
// Experimental: what this package exports may change in any version.
package bypassed

import (
	"go/ast"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1050.
var Doc = &rule.Doc{
	ID:     "FB1050",
	Name:   "BypassedClient",
	Title:  "retry client built but bypassed",
	Remedy: "pass on StandardClient(), which retries, instead of the client inside",
	Text: `retryablehttp.Client.HTTPClient is the plain client inside: code that takes it makes no
retries at all, although the code reads as if it did. StandardClient() is the one to pass on.

Reported are that field passed on, returned, stored or called, and retry clients that are
configured and then never used.`,
	Bad:      `return &API{http: retryClient.HTTPClient}`,
	Good:     `return &API{http: retryClient.StandardClient()}`,
	Standard: "R-1",
}

// Analyzer finds bypassed retry clients.
var Analyzer = rule.New(Doc, run)

// pkg is the one library with a field that leads around its retries.
const pkg = "github.com/hashicorp/go-retryablehttp"

// run leaves at once when the library is not imported, which is nearly always.
func run(p *rule.Pass) {
	if !p.Imports(pkg) {
		return
	}
	for _, f := range p.Files {
		fields(p, f)
	}
	unused(p)
}

// configures marks functions that set up a client, for which the inner one is
// the place to do it.
// To set a transport or a timeout on the inner client is right.
var configures = regexp.MustCompile(`(?i)config|set|instrument|wrap|apply|patch|trace|with|new`)

// fields reports uses of the inner client.
// The parent node decides: to read or set a field of the inner client is no
// bypass, but to hand the client on is one. Confidence is high only where the
// same function builds the retry client, because then no one else can have meant
// it.
func fields(p *rule.Pass, f *ast.File) {
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "HTTPClient" || !isClient(p.TypesInfo.TypeOf(sel.X)) || len(stack) < 2 {
			return true
		}
		c := rule.Sure(builds(stack)) // taken out of a client that others built, it may be meant
		switch up := stack[len(stack)-2].(type) {
		case *ast.CallExpr:
			if id := rule.LastName(up.Fun); id != nil && configures.MatchString(id.Name) {
				c = rule.Medium
			}
		case *ast.ReturnStmt, *ast.KeyValueExpr:
		case *ast.AssignStmt:
			if !storesField(up, sel) {
				return true
			}
		case *ast.SelectorExpr:
			// Only calls that send a request bypass the retries.
			switch up.Sel.Name {
			case "Do", "Get", "Post", "PostForm", "Head":
			default:
				return true
			}
		default:
			return true
		}
		p.ReportNode(sel, c, "takes the plain client out of the retry client: nothing is retried; use StandardClient()")
		return true
	})
}

// builds reports whether the function around the last node of stack makes the
// retry client itself.
// Literals inside the function count as part of it.
func builds(stack []ast.Node) bool {
	for _, n := range stack {
		d, ok := n.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		for n := range ast.Preorder(d.Body) {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				continue
			}
			if id := rule.LastName(c.Fun); id != nil && id.Name == "NewClient" {
				return true
			}
		}
	}
	return false
}

// storesField reports whether sel is on the right side, and what it is stored
// in is a field.
// A local variable may be used to configure the client, and is left alone.
func storesField(a *ast.AssignStmt, sel ast.Expr) bool {
	for i, r := range a.Rhs {
		if r == sel && i < len(a.Lhs) {
			_, ok := a.Lhs[i].(*ast.SelectorExpr)
			return ok
		}
	}
	return false
}

// isClient reports whether t is the retry client, or points to it.
func isClient(t types.Type) bool { return t != nil && retry.IsNamed(t, pkg, "Client") }

// unused reports NewClient() results of which only fields are set.
// Such code pays for a retry client and sends by another one.
func unused(p *rule.Pass) {
	for _, fn := range p.Funcs {
		for c := range retry.Calls(fn) {
			if retry.CallsTo(c.Common(), pkg, "NewClient") && !used(c) {
				p.ReportAt(c, rule.High, "the retry client is configured and then never used")
			}
		}
	}
}

// used reports whether anything but stores to its fields happens to v.
// A call of a method, a return and a store of the client itself all count as
// use.
func used(v ssa.Value) bool {
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		// Debug information is there in some drivers only, and must not change a
		// verdict.
		case *ssa.DebugRef:
		case *ssa.FieldAddr:
			for _, u := range *ref.Referrers() {
				if s, ok := u.(*ssa.Store); !ok || s.Addr != ssa.Value(ref) {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}
