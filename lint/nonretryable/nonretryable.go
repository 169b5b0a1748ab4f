// Package nonretryable reports retries on responses that will not change: most
// 4xx statuses, their gRPC counterparts, certificate errors (FB1035).
package nonretryable

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// Doc documents FB1035.
var Doc = &rule.Doc{
	ID:    "FB1035",
	Name:  "NonRetryable",
	Title: "retry on a non-retryable status, gRPC code or certificate error",
	Text: `A request that was refused for what it is (400, 401, 403, 404, 409, 422; gRPC
INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED) will be refused
again, and each retry is load for nothing. Certificate errors may mean an attack.

The rule follows the branches of a retry, of the helpers that it calls and of predicates
with "retry" in their name, for each of these statuses, and reports those that certainly lead to
another attempt; it reads tables of retryable statuses too. A 401 next to a token refresh is not
reported; a lone 404 or 409 is reported with medium confidence, since some services are
eventually consistent. The settings, or the policies of a policy file, say what else may be
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

// regions reports loops that begin another attempt after a final response.
// HTTP comes first: a region has one finding, and gateways look at both.
func regions(p *rule.Pass) {
	for _, r := range p.Regions {
		refresh := refreshes(r)
		limits, _ := p.Limits(r.Pos)
		mask := r.RetriedStatuses(false)
		if names := forbidden(limits, mask, false, refresh); len(names) > 0 {
			p.ReportRegion(r, certain(r, names, mask, false), "retries "+rule.Ops(r)+" on status "+strings.Join(names, ", "))
			continue
		}
		mask = r.RetriedStatuses(true)
		if names := forbidden(limits, mask, true, refresh); len(names) > 0 {
			p.ReportRegion(r, certain(r, names, mask, true), "retries "+rule.Ops(r)+" on gRPC code "+strings.Join(names, ", "))
		}
	}
}

// certain lowers the confidence where more than the status decides.
// A branch on the body, or on a header, may end the loop for just this response.
func certain(r *retryloop.Region, names []string, mask uint16, grpc bool) rule.Confidence {
	c := confidence(r, names)
	if c == rule.High && r.Doubtful(mask, grpc) {
		c = rule.Medium
	}
	return c
}

// confidence is high for a plain retry, and medium where only responses remain
// that an eventually consistent service may change.
// r is nil for predicates and tables, which have no loop to be doubted. A loop
// that waits for a state may retry a 404 on purpose.
func confidence(r *retryloop.Region, names []string) rule.Confidence {
	c := rule.High
	if r != nil && (!r.Pure || r.Waiting || !r.Spoken && len(r.Waits) == 0) {
		c = rule.Medium
	}
	if r != nil && (r.Loop == nil || !r.OnStatus() && r.InspectsError()) {
		c = rule.Medium
	}
	if soft(names) {
		c = min(c, rule.Medium)
	}
	return c
}

// soft reports whether all names are of responses that may pass in some systems:
// what is not there yet, a conflict, a token that is about to be renewed.
// One name outside of this list makes the finding sure.
func soft(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return n != "404" && n != "409" && n != "NOT_FOUND" && n != "401" })
}

// forbidden names the responses of mask that must not be retried where the limits
// hold.
// Bit 0 of mask stands for a success and is skipped. With refresh, credentials
// are renewed between attempts, so that 401 and 403 are fair to repeat. The
// limits come from the settings for the code at hand, and may allow or forbid
// more.
func forbidden(l config.Limits, mask uint16, grpc, refresh bool) []string {
	var names []string
	for i, r := range status.Responses(grpc) {
		if i == 0 || mask&(1<<i) == 0 {
			continue
		}
		credential := r.Name == "401" || r.Name == "403" || r.Name == "UNAUTHENTICATED"
		if !(refresh && credential) && !l.MayRetry(r.Name, !r.Final) {
			names = append(names, r.Name)
		}
	}
	return names
}

// refreshWord marks calls that get new credentials.
// The list is wide, because a false finding here blocks a merge.
var refreshWord = regexp.MustCompile(`(?i)refresh|renew|token|auth|login|sign|credential|nonce`)

// refreshes reports whether a region gets new credentials between attempts.
// It looks at calls in the loop only: a token that is fetched before it is the
// same for all attempts.
func refreshes(r *retryloop.Region) bool {
	if r.Loop == nil {
		return false
	}
	for b := range r.Loop.Blocks {
		for _, in := range b.Instrs {
			if c, ok := in.(*ssa.Call); ok && refreshWord.MatchString(dataflow.Describe(c.Common())) {
				return true
			}
		}
	}
	return false
}

var (
	// predicateWord marks functions, fields and lists that say what is retried;
	// negative marks those that say the opposite, or count retries.
	predicateWord = regexp.MustCompile(`(?i)retr(y|i)`)
	negative      = regexp.MustCompile(`(?i)non|not|never|no_?retr|cannot|dont|don't|stop|unretr|fatal|permanent|terminal|after|count|max`)
)

// predicates reports functions that call a final response retryable.
// Literals have no telling name, and are judged where they are handed on.
func predicates(p *rule.Pass) {
	for _, fn := range p.Funcs {
		name := fn.Name()
		if fn.Parent() != nil || !predicateWord.MatchString(name) || negative.MatchString(name) {
			continue
		}
		judge(p, fn, name)
	}
}

// judge reports a predicate that calls a final response retryable.
// A function that says yes to a success as well is about something else, such as
// whether a response may be cached. Certificate errors are judged apart from
// statuses, since R-9 allows no waiver and no setting for them.
func judge(p *rule.Pass, fn *ssa.Function, name string) {
	for _, grpc := range []bool{false, true} {
		mask := p.PredicateYes(fn, grpc)
		// Such a function decides about something else.
		if mask&1 != 0 { // true for a success: no such predicate
			continue
		}
		limits, _ := p.Limits(fn.Pos())
		names := forbidden(limits, mask, grpc, false)
		if len(names) == 0 {
			continue
		}
		p.Report(rule.Finding{
			Confidence: confidence(nil, names), Pos: fn.Pos(), Function: rule.FunctionName(fn),
			Message: name + " calls " + strings.Join(names, ", ") + " retryable",
		})
	}
	if p.RetriesCertificateErrors(fn) {
		p.Report(rule.Finding{
			Confidence: rule.High, Pos: fn.Pos(), Function: rule.FunctionName(fn), Standard: "R-9",
			Message: name + " calls a certificate error retryable",
		})
	}
}
