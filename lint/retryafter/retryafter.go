// Package retryafter reports retries on 429 or 503 that ignore Retry-After
// (FB1055).
//
// Experimental: what this package exports may change in any version.
package retryafter

import (
	"go/token"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1055.
var Doc = &rule.Doc{
	ID:     "FB1055",
	Name:   "RetryAfterIgnored",
	Title:  "Retry-After ignored on 429 or 503",
	Remedy: "wait at least as long as Retry-After says",
	Text: `A server that sends Retry-After with a 429 or 503 says when to come back. Coming back
earlier is another 429, and for some servers a ban.

Reported are retries on these statuses when neither the function nor a helper of its package
mentions Retry-After (or a rate-limit reset); with high confidence when the code names 429.`,
	Bad: `if resp.StatusCode == http.StatusTooManyRequests {
	time.Sleep(backoff(i))
	continue
}`,
	Good: `if resp.StatusCode == http.StatusTooManyRequests {
	floor, _ := httpretry.ParseRetryAfter(resp.Header, time.Now())
	time.Sleep(max(floor, backoff(i)))
	continue
}`,
	Standard: "R-5",
}

// Analyzer finds retries that ignore Retry-After.
var Analyzer = rule.New(Doc, run)

// mention marks the headers that say when to come back.
var mention = regexp.MustCompile(`(?i)retry.?after|rate.?limit.*reset|x-ratelimit`)

// run reports loops that certainly retry 429 or 503, with which servers send
// Retry-After (RFC 9110 section 10.2.3, RFC 6585 section 4), and look at no header. A
// mention anywhere in reach silences the rule. One that names 429 knows of the limit,
// which makes the finding sure.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Loop == nil || !slices.ContainsFunc(r.Ops, retry.Responds) || r.Mentions(mention.MatchString) {
			continue
		}
		retried := p.Retried(r, false, func(resp retry.Response) bool { return !resp.Final })
		if len(retried) > 0 {
			p.ReportRetry(r, rule.Sure(names429(r) && r.Pure), "retries "+r.OpNames()+" on 429 or 503 without a look at Retry-After")
		}
	}
}

// names429 reports whether the loop compares a status with 429. A range such as
// >= 500 says nothing about limits.
func names429(r *retry.Retry) bool {
	for b := range retry.Instrs[*ssa.BinOp](r) {
		x, _ := retry.Number(b.X)
		y, _ := retry.Number(b.Y)
		if b.Op == token.EQL && (x == 429 || y == 429) {
			return true
		}
	}
	return false
}
