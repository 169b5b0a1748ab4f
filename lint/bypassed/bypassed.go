// Package bypassed reports retry clients that are built and then not used for
// the requests (FB1050).
//
// Experimental: what this package exports may change in any version.
package bypassed

import (
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1050.
var Doc = &rule.Doc{
	ID:     "FB1050",
	Name:   "BypassedClient",
	Title:  "retry client built but bypassed",
	Remedy: "pass on StandardClient(), which retries, instead of the client inside",
	Text: `retryablehttp.Client.HTTPClient is the plain client inside: code that uses it does not
retry, although it looks as if it did. StandardClient() is the one to pass on.

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

// run follows the field out of the client, and the client from where it is built.
func run(p *rule.Pass) {
	for _, fn := range p.Funcs {
		built := false
		for c := range retry.Calls(fn) {
			if retry.CallsTo(c.Common(), pkg, "NewClient") {
				built = true
				if !used(c) {
					p.ReportAt(c, rule.High, "the retry client is configured but never used")
				}
			}
		}
		for fa := range retry.InstrsOf[*ssa.FieldAddr](fn) {
			if retry.FieldName(fa) == "HTTPClient" && retry.IsNamed(fa.X.Type(), pkg, "Client") {
				if c, taken := leaves(fa); taken { // out of a client that others built, it may be meant
					p.ReportAt(fa, min(c, rule.Sure(built)), "takes the plain client out of the retry client, so nothing is retried: use StandardClient()")
				}
			}
		}
	}
}

// configures marks functions that set a client up rather than use it.
var configures = regexp.MustCompile(`(?i)config|set|instrument|wrap|apply|patch|trace|with|new`)

// leaves reports whether a field is returned, stored, passed on or asked to send a
// request.
func leaves(fa *ssa.FieldAddr) (c rule.Confidence, is bool) {
	for _, ref := range *fa.Referrers() {
		load, ok := ref.(*ssa.UnOp)
		if !ok {
			continue
		}
		for _, use := range *load.Referrers() {
			switch use := use.(type) {
			case *ssa.Return:
				return rule.High, true
			case *ssa.Store:
				if _, isField := use.Addr.(*ssa.FieldAddr); isField && use.Val == ssa.Value(load) {
					return rule.High, true
				}
			case *ssa.Call:
				name := eval.CalleeName(use.Common())
				switch {
				case eval.CalleePkg(use.Common()) != "net/http":
					return rule.Sure(!configures.MatchString(name)), true
				case eval.SendWord.MatchString(name):
					return rule.High, true
				}
			}
		}
	}
	return rule.Low, false
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
