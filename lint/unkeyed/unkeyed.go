// Package unkeyed reports POST and PATCH requests that are retried without an
// idempotency key (FB1030).
//
// Experimental: what this package exports may change in any version.
package unkeyed

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1030.
var Doc = &rule.Doc{
	ID:     "FB1030",
	Name:   "UnkeyedWrite",
	Title:  "POST or PATCH retried without an idempotency key",
	Remedy: "send one Idempotency-Key with all attempts, or do not retry the request",
	Text: `A POST whose response was lost may have been carried out. Repeating it charges the
card twice, unless both requests carry the same Idempotency-Key and the server honors it.

Reported are retries of POST or PATCH requests without a header, field or call nearby that names
an idempotency key. The method is followed through helpers, fields, builders and captured variables
to the constant that sets it; if callers choose it, one finding at the retry names a caller that
chooses a write. A round tripper, a middleware function, or a client's Do that repeats whatever it
is given is reported itself.

Not reported are retries behind a branch that excludes writes, and retries of requests that were
not carried out: after 429, a conflict, or a refused connection. Suppress a POST that only reads (a
search, a GraphQL query) with a reason.`,
	Bad: `for range 3 {
	req, _ := http.NewRequest("POST", url, bytes.NewReader(body))
	if resp, err = client.Do(req); err == nil {
		break
	}
	time.Sleep(wait())
}`,
	Good: `key := uuid.NewString()
for range 3 {
	req, _ := http.NewRequest("POST", url, bytes.NewReader(body))
	req.Header.Set("Idempotency-Key", key)
	if resp, err = client.Do(req); err == nil {
		break
	}
	time.Sleep(wait())
}`,
	Standard: "R-6",
}

// Analyzer finds writes that are retried without a key.
var Analyzer = rule.New(Doc, run)

// run reports retries that send a write again, and calls that hand one to a retry
// helper. One helper is one finding: what its callers hand over is not reported
// when the helper itself sends what it is given.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		w := p.Writes(r)
		if w == nil || keyed(r.Fn) || r.Waiting && (!r.Pure || r.WaitFirst) || asksMethod(p, r.Fn) {
			continue
		}
		if !w.Open {
			if !harmless(r.Fn, w) {
				p.ReportRetry(r, rule.Sure(r.Pure), "retries "+w.Method+" by "+r.OpNames()+" without an Idempotency-Key")
			}
			continue
		}
		if caller, method := p.WriterTo(r.Fn); caller != nil && !harmless(caller, w) {
			p.ReportRetry(r, rule.High, "retries whatever method it is given, "+method+" by "+caller.Name()+" too, without an Idempotency-Key")
		} else if standsIn(p, r.Fn) || w.Depth == 0 && takenBy(p, r.Fn, 3) {
			p.ReportRetry(r, rule.High, "retries every request, whatever its method, without an Idempotency-Key")
		}
	}
	seen := map[*ssa.Function]bool{}
	for _, h := range p.Handed() {
		if seen[h.Fn] || keyed(h.Call.Parent()) || keyed(h.Fn) {
			continue
		}
		w := p.WritesHanded(h)
		if w == nil || harmless(h.Call.Parent(), w) {
			continue
		}
		helper := retry.Describe(h.Call.Common())
		switch {
		case !w.Open:
			seen[h.Fn] = true
			p.ReportAt(h.Call, rule.High, "retries "+w.Method+" through "+helper+" without an Idempotency-Key", helper)
		case takesAny(h.Call.Parent()) || p.Chooses(h.Call.Parent()):
			seen[h.Fn] = true
			p.ReportAt(h.Call, rule.High, "retries every request through "+helper+", whatever its method, without an Idempotency-Key", helper)
		}
	}
	clients(p)
	rule.Report(p, table.Unkeyed)
}

// clients reports requests that are sent by a client which retries by itself, whatever
// their method: a write, or what a caller may choose to be one.
func clients(p *rule.Pass) {
	resty := false
	for _, fn := range p.Funcs {
		for c := range retry.Calls(fn) {
			resty = resty || ofResty(c) && eval.CalleeName(c.Common()) == "SetRetryCount"
		}
	}
	for _, fn := range p.Funcs {
		for c := range retry.Calls(fn) {
			com := c.Common()
			if name := eval.CalleeName(com); resty && ofResty(c) && (name == "Post" || name == "Patch") && !keyed(fn) {
				p.ReportAt(c, rule.High, "resty retries this "+strings.ToUpper(name)+" without an Idempotency-Key")
			}
			if retry.CallsTo(com, "github.com/hashicorp/go-retryablehttp", "StandardClient") && kept(c) && !keyed(fn) && writes(p) && !p.ChosenByMethod("CheckRetry") {
				p.ReportAt(c, rule.High, "retryablehttp's standard client retries every request, POST too, without an Idempotency-Key")
			}
			if !retry.CallsTo(com, "github.com/hashicorp/go-retryablehttp", "Do") || len(com.Args) != 2 || keyed(fn) {
				continue
			}
			switch method := p.MethodAt(c, com.Args[1]); {
			case method == "POST" || method == "PATCH":
				p.ReportAt(c, rule.High, "retryablehttp retries this "+method+" without an Idempotency-Key")
			case method == "":
				if caller, method := p.WriterTo(fn); caller != nil {
					p.ReportAt(c, rule.High, "retryablehttp retries whatever method it is given, "+method+" by "+caller.Name()+" too, without an Idempotency-Key")
				} else if takesAny(fn) {
					p.ReportAt(c, rule.High, "retryablehttp retries every request, whatever its method, without an Idempotency-Key")
				}
			}
		}
	}
}

// kept reports whether a client becomes a field: of one of the package's own, say.
func kept(c *ssa.Call) bool {
	return slices.ContainsFunc(*c.Referrers(), func(in ssa.Instruction) bool {
		st, ok := in.(*ssa.Store)
		return ok && retry.FieldName(st.Addr) != ""
	})
}

// writes reports whether the package names a method that writes.
func writes(p *rule.Pass) bool {
	return slices.ContainsFunc(p.Funcs, func(fn *ssa.Function) bool {
		return retry.MentionedIn(fn, func(s string) bool { return s == "POST" || s == "PATCH" }, 0)
	})
}

// asksMethod reports whether a function asks a policy in a field that looks at the method.
func asksMethod(p *rule.Pass, fn *ssa.Function) bool {
	for c := range retry.Calls(fn) {
		if u, ok := c.Common().Value.(*ssa.UnOp); ok && p.ChosenByMethod(retry.FieldName(u.X)) {
			return true
		}
	}
	return false
}

// ofResty reports whether a call is one of resty, which retries when it is told to.
func ofResty(c *ssa.Call) bool {
	return strings.HasPrefix(eval.CalleePkg(c.Common()), "github.com/go-resty/resty/") || eval.CalleePkg(c.Common()) == "github.com/go-resty/resty"
}

// keyed reports whether a function, or one around it, names an idempotency key: a
// header, a field or a call. It errs on the side of silence.
func keyed(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if retry.MentionedIn(fn, rule.IsKeyName, 1) {
			return true
		}
	}
	return false
}

// harmless reports whether the names of a function, or its paths, say that a write
// only reads, or that no server would honor a key for it: queries, tokens, telemetry.
func harmless(fn *ssa.Function, w *retry.Write) bool {
	for f := fn; f != nil; f = f.Parent() {
		recv := f.Signature.Recv()
		if harmlessWord.MatchString(f.Name()) || recv != nil && harmlessWord.MatchString(retry.TypeName(recv.Type())) {
			return true
		}
	}
	sender := w.Send.Call.Parent()
	isPath := func(s string) bool {
		return len(s) > 1 && (s[0] == '/' || strings.HasPrefix(s, "http")) && harmlessWord.MatchString(s)
	}
	return sender != nil && (harmlessWord.MatchString(sender.Name()) || retry.MentionedIn(sender, isPath, 0)) || retry.MentionedIn(fn, isPath, 0)
}

// harmlessWord marks such names.
var harmlessWord = regexp.MustCompile(`(?i)graphql|search|token|oauth|login|jsonrpc|quer(y|ies)|metadata|telemetry|metrics|traces|spans?$|logs?$|validat|(^|[^a-z])(list|read|find|lookup|describe|preview|expand|check)`)

// standsIn reports whether a function, or one of the package that hands its request on to
// it, stands in for a client.
func standsIn(p *rule.Pass, fn *ssa.Function) bool {
	return roundTrips(fn) || slices.ContainsFunc(p.Callers(retry.Outermost(fn)), func(c *ssa.Call) bool {
		return roundTrips(c.Parent()) && slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool {
			_, own := a.(*ssa.Parameter)
			return own && retry.IsNamed(a.Type(), "net/http", "Request")
		})
	})
}

// roundTrips reports whether a function stands in for a client: it exchanges a request for
// a response, as a literal or a method for callers anywhere, or is named for it.
func roundTrips(fn *ssa.Function) bool {
	if retry.Exchanges(fn.Signature) && (fn.Parent() != nil || fn.Signature.Recv() != nil && fn.Object() != nil && fn.Object().Exported()) {
		return true
	}
	fn = retry.Outermost(fn)
	return clientWord.MatchString(fn.Name()) && slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool {
		return retry.IsNamed(p.Type(), "net/http", "Request")
	})
}

// clientWord marks functions that do whatever they are given.
var clientWord = regexp.MustCompile(`^(RoundTrip|roundTrip|do|Do.*)$`)

// takesAny reports whether other packages may call a function for requests of any
// method: Do, Execute and their like, that are given a method, a request, or hold one.
func takesAny(fn *ssa.Function) bool {
	fn = retry.Outermost(fn)
	return fn.Object() != nil && fn.Object().Exported() && anyWord.MatchString(fn.Name())
}

// takenBy reports whether a function takes any request, or one of the package that calls it
// does, and neither looks at the method nor has others look for it.
func takenBy(p *rule.Pass, fn *ssa.Function, depth int) bool {
	return takesAny(fn) || depth > 0 && slices.ContainsFunc(p.Callers(retry.Outermost(fn)), func(c *ssa.Call) bool {
		return !careful(c.Parent(), 1) && takenBy(p, c.Parent(), depth-1)
	})
}

// careful reports whether a function, or one that it calls, speaks of methods or keys.
func careful(fn *ssa.Function, depth int) bool {
	if retry.MentionedIn(fn, func(name string) bool { return name == "Method" || rule.IsKeyName(name) }, 1) {
		return true
	}
	for c := range retry.Calls(fn) {
		if f := eval.Static(c.Common()); depth > 0 && f != nil && careful(f, depth-1) {
			return true
		}
	}
	return false
}

// anyWord marks such functions.
var anyWord = regexp.MustCompile(`^(Do|Execute|Request|Send|Call|Invoke|Perform|RoundTrip|Exec)([A-Z].*)?$|Request$`)
