// Package totalduration reports retries without a limit in time (FB1012).
//
// Experimental: what this package exports may change in any version.
package totalduration

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1012.
var Doc = &rule.Doc{
	ID:     "FB1012",
	Name:   "NoTotalDuration",
	Title:  "retry without a total duration",
	Remedy: "give all attempts one deadline: context.WithTimeout before the loop",
	Text: `A count of attempts does not bound the time: five attempts against a server that responds
after a minute take five minutes. The standard limits a synchronous call, waits included, to 30 s.

It reports, with low confidence, retries that have a count but no deadline or context;
with medium confidence those whose constant waits alone exceed 30 s.`,
	Bad: `for range 5 {
	if err = send(); err == nil {
		return nil
	}
	time.Sleep(15 * time.Second)
}`,
	Good: `ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
defer cancel()
err := retryer.Do(ctx, send)`,
	Standard: "R-3",
}

// Analyzer finds retries without a limit in time.
var Analyzer = rule.New(Doc, run)

// limit is what the standard allows in all where no policy says otherwise.
// It holds for synchronous calls; waits include those between attempts.
const limit = 30 * time.Second

// run reports counted loops without a deadline. Where the waits alone are known
// to last longer than the limit, that is a warning; else it is a hint, since the
// operation may have a timeout that is not seen here.
// Local work is left out, as it has no peer to overload. There is one wait less
// than there are attempts. A growing wait is not summed up, because its ceiling
// is seldom known.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if !r.Pure || !r.Bound.Counter || r.Bound.Deadline || r.Bound.Context ||
			r.Waiting || r.Weak || r.Boundary == retry.Local {
			continue
		}
		waits := time.Duration(0)
		if r.Delay.Class == retry.Fixed && r.Delay.Known && r.Bound.Known {
			waits = r.Delay.Value * time.Duration(r.Bound.Limit-1)
		}
		if waits > limit {
			p.ReportRetry(r, rule.Medium, fmt.Sprintf("retries %s for %v of waits alone; at most %v are allowed in all", r.OpNames(), waits, limit))
			continue
		}
		p.ReportRetry(r, rule.Low, "retries "+r.OpNames()+" without a total duration")
	}
}
