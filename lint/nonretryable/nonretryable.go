// Package nonretryable reports retries on responses that will not change: most
// 4xx statuses, their gRPC counterparts, certificate errors (FB1035).
//
// Experimental: what this package exports may change in any version.
package nonretryable

import (
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// Doc documents FB1035.
var Doc = &rule.Doc{
	ID:     "FB1035",
	Name:   "NonRetryable",
	Title:  "retry on a non-retryable status, gRPC code or certificate error",
	Remedy: "return such a response at once; retry 429, 502, 503, 504 and lost connections",
	Text: `A request that was refused for what it is (400, 401, 403, 404, 409, 422; gRPC
INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED) will be refused
again, and each retry is load for nothing. Certificate errors may mean an attack.

The rule follows the branches of a retry, of the helpers that it calls and of predicates
with "retry" in their name, for all statuses at once, and reports those that lead to another
attempt: through ranges and classes, lists and tables, bools, results and fields that hold a
status, errors that are made of one, what a circuit breaker or a tracer is handed to
carry out. A setting counts by its default, or by its name, with medium confidence, and so does a client behind an interface by what its module has of the kind. How sure it
is rests on the statuses alone, be the loop a poller or a consumer; those that a branch in doubt may
end it by are left out when others are certain. A 401 next to a token refresh is not reported; a lone 404 or 409 is reported
with medium confidence, since some services are eventually consistent; a loop that asks somebody
else about the response is not. The settings, or the policies of a policy file, say what else may be
retried, or may not: for everything, or for the code of one dependency.`,
	Bad: `if resp.StatusCode != http.StatusOK {
	time.Sleep(wait())
	continue
}`,
	Good: `switch resp.StatusCode {
case 408, 429, 500, 502, 503, 504:
	time.Sleep(wait())
	continue
}`,
	Standard: "R-4, R-9",
}

// Analyzer finds retries on responses that will not change.
var Analyzer = rule.New(Doc, run)

// run asks each place that chooses what is retried: loops, predicates and what
// they are handed to, callbacks, lists, service configs, certificates, options
// of libraries.
// The order does not matter; the same finding at the same place is reported
// once.
func run(p *rule.Pass) {
	regions(p)
	predicates(p)
	handed(p)
	callbacks(p)
	lists(p)
	serviceConfigs(p)
	certificates(p)
	libraries(p)
}

// regions reports loops that begin another attempt after a final response, or start
// something again that has failed with one.
// HTTP comes first: a region has one finding, and gateways look at both.
func regions(p *rule.Pass) {
	for _, r := range slices.Concat(p.Regions, p.Restarts) {
		refresh := refreshes(r)
		for _, grpc := range []bool{false, true} {
			retried, guessed := r.RetriedStatuses(grpc)
			names := forbidden(p, r.Pos, retried, grpc, refresh)
			if len(names) == 0 {
				continue
			}
			kind := "status"
			if grpc {
				kind = "gRPC code"
			}
			sure := rule.Medium
			certain := forbidden(p, r.Pos, retried.Minus(r.Doubtful(retried, grpc)), grpc, refresh)
			switch {
			case !guessed && plain(r) && confidence(certain) == rule.High:
				sure, names = rule.High, certain
			case r.Consults(retried, grpc):
				sure = rule.Low // it may well be told of it
			}
			p.ReportRegion(r, sure, "retries "+rule.Ops(r)+" on "+kind+" "+strings.Join(names, ", "))
			break
		}
	}
}

// plain reports whether a region is one in which a failure alone leads to another
// attempt, or to another start of what has failed. What else speaks for or
// against a retry does not count here: a poller that goes on after a response that
// will not change is at fault too, and what waits for a state has other responses
// to go on after than those that confidence asks for.
func plain(r *retryloop.Region) bool {
	return r.Loop != nil && !r.Guessed() && (len(r.Waits) > 0 || r.Pure && r.Spoken)
}

// confidence is medium where only responses remain that may pass in some systems:
// what is not there yet, a conflict, a token that is about to be renewed.
// One name outside of this list makes the finding sure.
func confidence(names []string) rule.Confidence {
	lasts := func(n string) bool { return n != "404" && n != "409" && n != "NOT_FOUND" && n != "401" }
	return rule.Sure(slices.ContainsFunc(names, lasts))
}

// forbidden names the responses of a set that the code at pos must not retry.
// With refresh, credentials
// are renewed between attempts, so that 401 and 403 are fair to repeat.
func forbidden(p *rule.Pass, pos token.Pos, set codeset.Set, grpc, refresh bool) []string {
	var names []string
	for _, r := range status.Responses(grpc)[1:] {
		if !set.Has(r.Number) {
			continue
		}
		credential := r.Name == "401" || r.Name == "403" || r.Name == "UNAUTHENTICATED"
		if !(refresh && credential) && final(p, pos, r) {
			names = append(names, r.Name)
		}
	}
	return names
}

// final reports whether the code at pos must not retry a response. The settings
// may allow or forbid more there than the standard does.
func final(p *rule.Pass, pos token.Pos, r status.Response) bool {
	limits, _ := p.Limits(pos)
	return !limits.MayRetry(r.Name, !r.Final)
}

// refreshWord marks calls that get new credentials.
// The list is wide, because a false finding here blocks a merge.
var refreshWord = regexp.MustCompile(`(?i)refresh|renew|token|auth|login|sign|credential|nonce`)

// refreshes reports whether a region gets new credentials between attempts.
// It looks at calls in the loop only: a token that is fetched before it is the
// same for all attempts.
func refreshes(r *retryloop.Region) bool {
	for c := range retryloop.Instrs[*ssa.Call](r) {
		if refreshWord.MatchString(dataflow.Describe(c.Common())) {
			return true
		}
	}
	return false
}

// countWord marks what counts retries, or says when they come.
var countWord = regexp.MustCompile(`^(after|count(s|er)?|max(imum)?|max_?retr.*|retr(y|ies)_?(after|count|max))$`)

// negative reports whether a name says the opposite of what is retried, or counts
// retries.
func negative(name string) bool {
	return dataflow.SaysNot(name) || slices.ContainsFunc(dataflow.Words(name), countWord.MatchString)
}

// predicates reports functions that call a final response retryable.
// Literals have no telling name, and are judged where they are handed on.
func predicates(p *rule.Pass) {
	for _, fn := range p.Funcs {
		if fn.Parent() == nil && saysRetry(fn.Name()) && isAsked(fn) {
			judge(p, fn, fn.Name())
		}
	}
}

// saysRetry reports whether a name says what is retried. A negative one turns the
// meaning around.
func saysRetry(name string) bool {
	return dataflow.SaysRetry(name) && !negative(name)
}

// judge reports a predicate that calls a final response retryable.
// A function that says yes to a success as well is about something else, such as
// whether a response may be cached. Certificate errors are judged apart from
// statuses, since R-9 allows no waiver and no setting for them.
func judge(p *rule.Pass, fn *ssa.Function, name string) {
	for _, grpc := range []bool{false, true} {
		yes, guessed := p.Judge.Yes(fn, grpc)
		names := forbidden(p, fn.Pos(), yes, grpc, false)
		if len(names) == 0 || yes.Has(status.Responses(grpc)[0].Number) { // true for a success: no such predicate
			continue
		}
		p.Report(rule.Finding{
			Confidence: rule.Sure(!guessed && confidence(names) == rule.High), Pos: fn.Pos(), Function: rule.FunctionName(fn),
			Message: name + " calls " + strings.Join(names, ", ") + " retryable",
		})
	}
	if p.Judge.YesToCertificate(fn) {
		p.Report(rule.Finding{
			Confidence: rule.High, Pos: fn.Pos(), Function: rule.FunctionName(fn), Standard: "R-9",
			Message: name + " calls a certificate error retryable",
		})
	}
}

// certificates reports branches on an x509 error that lead to another attempt.
// A recursion has no branches that could be followed, so only loops are judged.
func certificates(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Loop == nil || !r.OnCertificateError() {
			continue
		}
		f := rule.RegionFinding(r, rule.High, "retries "+rule.Ops(r)+" on a certificate error")
		f.Standard = "R-9" // which cannot be waived
		p.Report(f)
	}
}
