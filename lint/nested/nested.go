// Package nested reports retries of something that retries itself (FB1040).
//
// Experimental: what this package exports may change in any version.
package nested

import (
	"fmt"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1040.
var Doc = &rule.Doc{
	ID:     "FB1040",
	Name:   "NestedRetries",
	Title:  "nested retrying layers",
	Remedy: "retry in one layer, and turn the other's retries off",
	Text: `Attempts multiply: three attempts of something that makes three attempts are nine, and
with a third layer 27. Retry only in the layer right above the dependency.

It reports retries whose operation is known to retry, by its source, by the fact of another
package, or by the table of clients that retry by default; with the product when the counts
are constant.`,
	Bad: `for range 3 {
	err = fetchWithRetry() // four attempts
}`,
	Good:     `err = fetchWithRetry()`,
	Standard: "R-2",
}

// Analyzer finds nested retries.
var Analyzer = rule.New(Doc, run)

// run reports a retry around a client, a helper or a loop that retries by itself. What
// waits for a state is no layer.
func run(p *rule.Pass) {
	inner := map[*ssa.Function]*retry.Retry{}
	for _, r := range p.Retries {
		if r.Pure && !r.Callback && !r.Waiting && r.Fn.Parent() == nil {
			inner[r.Fn] = r
		}
	}
	for _, r := range p.Retries {
		if !r.Pure || r.Waiting || r.Weak {
			continue
		}
		for _, op := range r.Ops {
			callee := eval.Static(op.Common())
			if in := inner[callee]; in != nil && in != r {
				c := rule.Sure(r.Spoken && r.Boundary == retry.Remote && r.Bound.Counter && in.Bound.Counter)
				p.ReportRetry(r, c, "retries "+retry.Describe(op.Common())+", which retries itself"+product(r.Bound, int(in.Bound.Limit)))
				break
			}
			if n, ok := p.RetriesItself(op.Common()); ok {
				c := rule.Sure(r.Spoken && r.Boundary == retry.Remote && r.Bound.Counter && n > 0)
				p.ReportRetry(r, c, "retries "+retry.Describe(op.Common())+", which retries itself"+product(r.Bound, n))
				break
			}
			if n, ok := sdk(op.Common()); ok {
				p.ReportRetry(r, rule.Medium, "retries "+retry.Describe(op.Common())+", whose client retries by default"+product(r.Bound, n))
				break
			}
		}
	}
	for _, h := range p.Handed() {
		for c := range retry.Calls(h.Fn) {
			n, known := sdk(c.Common())
			callee := eval.Static(c.Common())
			if in := inner[callee]; !known && (callee == nil || in == nil) {
				continue
			}
			message := retry.Describe(h.Call.Common()) + " retries " + retry.Describe(c.Common()) + ", which retries itself"
			if known {
				message += fmt.Sprintf(" (%d attempts by default)", n)
			}
			p.ReportAt(h.Call, rule.Medium, message)
			break
		}
	}
}

// product says how many attempts there may be in all, or "" when a count is not
// constant: a guess would be quoted as a fact.
func product(b retry.Bound, inner int) string {
	if !b.Known || inner <= 1 {
		return ""
	}
	return fmt.Sprintf(": %d x %d = %d attempts", b.Limit, inner, int(b.Limit)*inner)
}

// sdks are clients that retry by themselves, with the attempts that they make by
// default.
var sdks = []struct {
	pkg      string
	attempts int
}{
	{"github.com/aws/aws-sdk-go-v2/service", 3},
	{"github.com/aws/aws-sdk-go/service", 4},
	{"github.com/hashicorp/go-retryablehttp", 5},
	{"github.com/minio/minio-go", 10},
	{"github.com/stripe/stripe-go", 3},
	{"github.com/Azure/azure-sdk-for-go/sdk", 4},
	{"github.com/hetznercloud/hcloud-go", 5},
	{"github.com/cloudflare/cloudflare-go", 4},
	{"github.com/openai/openai-go", 3},
	{"github.com/anthropics/anthropic-sdk-go", 3},
}

// sdk returns the number of attempts that the client behind a call makes by default.
// One that is configured to make one is not seen, so that findings by it are
// warnings.
func sdk(c *ssa.CallCommon) (attempts int, ok bool) {
	pkg := eval.CalleePkg(c)
	for _, s := range sdks {
		if strings.HasPrefix(pkg, s.pkg) && c.Signature().Params().Len() > 0 {
			return s.attempts, true
		}
	}
	return 0, false
}
