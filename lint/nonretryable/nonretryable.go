// Package nonretryable reports retries on responses that will not change: most
// 4xx statuses, their gRPC counterparts, certificate errors (FB1035).
//
// Experimental: what this package exports may change in any version.
package nonretryable

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1035.
var Doc = &rule.Doc{
	ID:     "FB1035",
	Name:   "NonRetryable",
	Title:  "retry on a non-retryable status, gRPC code or certificate error",
	Remedy: "return such a response at once; retry 429, 502, 503, 504 and lost connections",
	Text: `A request refused for what it is (400, 401, 403, 404, 409, 422; gRPC INVALID_ARGUMENT,
NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED) will be refused again, so each retry
is wasted load. Certificate errors may mean an attack.

The rule follows the branches of a retry, of the helpers that it calls and of predicates
with "retry" in their name, and reports the statuses that lead to another attempt: through ranges
and classes, lists and tables, bools, results, fields and errors that hold a status. Statuses that
an uncertain branch may end the loop on are left out. A 401 next to a token refresh is not
reported. A lone 404 or 409 is reported with medium confidence, since some services are eventually
consistent. A loop that passes the response to an unknown function is not reported. The settings
or a policy file allow or forbid more, for everything or for the code of one dependency.`,
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

// run asks each place that chooses what is retried. The same finding at the same place
// is reported once.
func run(p *rule.Pass) {
	regions(p)
	predicates(p)
	handed(p)
	callbacks(p)
	lists(p)
	serviceConfigs(p)
	libraries(p)
}

// regions reports retries that begin another attempt after a final response, or after
// an error of the certificate that they ask for.
func regions(p *rule.Pass) {
	for _, r := range p.Retries {
		if p.OnCertificate(r) {
			f := rule.RetryFinding(r, rule.High, "retries "+r.OpNames()+" on a certificate error")
			f.Standard = "R-9" // which cannot be waived
			p.Report(f)
		}
		if len(r.Waits) == 0 && !(r.Pure && r.Spoken) || r.Boundary == retry.Local {
			continue
		}
		refresh := refreshes(r)
		for _, grpc := range []bool{false, true} {
			names := p.Retried(r, grpc, func(resp response.Response) bool { return final(p, r.Pos, resp) && !(refresh && credential(resp.Name)) })
			if len(names) == 0 {
				continue
			}
			kind := "status"
			if grpc {
				kind = "gRPC code"
			}
			p.ReportRetry(r, confidence(names), "retries "+r.OpNames()+" on "+kind+" "+strings.Join(names, ", "))
			break
		}
	}
}

// credential reports whether a response is about credentials: renewed between
// attempts, it is fair to repeat.
func credential(name string) bool { return name == "401" || name == "403" || name == "UNAUTHENTICATED" }

// confidence is medium where only responses remain that may pass in some systems:
// what is not there yet, a conflict, a token that is about to be renewed.
func confidence(names []string) rule.Confidence {
	lasts := func(n string) bool { return n != "404" && n != "409" && n != "NOT_FOUND" && n != "401" }
	return rule.Sure(slices.ContainsFunc(names, lasts))
}

// final reports whether the code at pos must not retry a response. The settings
// may allow or forbid more there than the standard does.
func final(p *rule.Pass, pos token.Pos, r response.Response) bool {
	limits, _ := p.Limits(pos)
	return !limits.MayRetry(r.Name, !r.Final)
}

// refreshWord marks calls that get new credentials.
// The list is wide, because a false finding here blocks a merge.
var refreshWord = regexp.MustCompile(`(?i)refresh|renew|token|auth|login|sign|credential|nonce`)

// refreshes reports whether a retry gets new credentials between attempts.
func refreshes(r *retry.Retry) bool {
	for c := range retry.Instrs[*ssa.Call](r) {
		if refreshWord.MatchString(retry.Describe(c.Common())) {
			return true
		}
	}
	return false
}

// countWord marks what counts retries, or says when they come.
var countWord = regexp.MustCompile(`(?i)retry.?after|count|max.?retr|retr(y|ies).?max|delay|wait|backoff|interval`)

// saysRetry reports whether a name says what is retried. A negative one turns the
// meaning around.
func saysRetry(name string) bool {
	return askWord.MatchString(name) && !retry.SaysNot(name) && !countWord.MatchString(name)
}

// askWord marks predicates and lists of what is retried.
var askWord = regexp.MustCompile(`(?i)retry|retri(es|ed|able)|transient|temporary`)

// predicates reports functions that call a final response retryable.
// Literals have no telling name, and are judged where they are handed on.
func predicates(p *rule.Pass) {
	for _, fn := range p.Funcs {
		if fn.Parent() == nil && saysRetry(fn.Name()) && retry.IsAsked(fn) {
			judge(p, fn, fn.Name())
		}
	}
}

// judge reports a predicate that calls a final response retryable. Certificate errors
// are judged apart, since R-9 allows no waiver and no setting for them.
func judge(p *rule.Pass, fn *ssa.Function, name string) {
	if res := fn.Signature.Results(); res.Len() == 0 || types.TypeString(res.At(0).Type().Underlying(), nil) != "bool" {
		return
	}
	for _, grpc := range []bool{false, true} {
		var names []string
		for _, resp := range response.All(grpc) {
			yes, _, asked := p.Says(fn, resp)
			if !asked {
				break
			}
			if yes && final(p, fn.Pos(), resp) {
				names = append(names, resp.Name)
			}
		}
		if len(names) > 0 && confidence(names) == rule.High {
			p.Report(rule.Finding{
				Confidence: rule.High, Pos: fn.Pos(), Function: rule.FunctionName(fn), Message: name + " calls " + strings.Join(names, ", ") + " retryable",
			})
		}
	}
	if p.SaysOfCertificate(fn) {
		p.Report(rule.Finding{
			Confidence: rule.High, Pos: fn.Pos(), Function: rule.FunctionName(fn), Standard: "R-9",
			Message: name + " calls a certificate error retryable",
		})
	}
}
