// Package attempts reports retries that attempt more often than any range of
// the standard allows (FB1011).
//
// Experimental: what this package exports may change in any version.
package attempts

import (
	"fmt"
	"go/constant"
	"go/token"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1011.
var Doc = &rule.Doc{
	ID:     "FB1011",
	Name:   "TooManyAttempts",
	Title:  "attempts over the allowed range",
	Remedy: "allow at most 6 attempts for a call, 11 for an event; max_attempts sets the limit",
	Text: `The standard allows 1 to 5 retries for synchronous calls and 1 to 10 for events. Source
code does not show which kind a call is, so only counts above the wider range are reported. Set
max_attempts, for everything or for the code of one dependency, in the settings or a policy file.`,
	Bad:      `for i := 0; i < 50; i++ { ... }`,
	Good:     `for i := 0; i < 4; i++ { ... }`,
	Standard: "R-2",
}

// Analyzer finds retries that attempt too often.
var Analyzer = rule.New(Doc, run)

// run takes the limit from the code's own dependency, as the settings or its
// policy have it. Configured counts of known libraries are judged like counters;
// where a library counts retries, the first attempt is added.
// Confidence is medium at most, since the standard's range depends on the kind
// of call; a loop that waits for a state gets low.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		limit, whose := limitAt(p, r.Pos)
		if !r.Pure || !r.Bound.Known || r.Bound.Limit <= limit {
			continue
		}
		c := min(rule.Medium, rule.RetryConfidence(r))
		if r.Waiting || r.WaitFirst {
			c = rule.Low
		}
		p.ReportRetry(r, c, fmt.Sprintf("retries %s up to %d times; at most %d attempts are allowed%s", r.OpNames(), r.Bound.Limit, limit, whose))
	}
	for _, m := range table.Find(p.Pass, table.Attempts) {
		if m.Value == nil {
			continue
		}
		// A count that is computed at run time is not judged.
		n, ok := constant.Int64Val(constant.ToInt(m.Value))
		if !ok {
			continue
		}
		// MaxRetries of 3 makes four attempts.
		if retries := m.Entry.Call + m.Entry.Field; strings.Contains(retries, "Retr") && !strings.Contains(retries, "Attempts") {
			n++
		}
		if limit, whose := limitAt(p, m.Node.Pos()); n > limit {
			p.ReportNode(m.Node, rule.Medium, fmt.Sprintf("%s allows %d attempts; at most %d are allowed%s", m.Entry.Message, n, limit, whose))
		}
	}
}

// limitAt returns how many attempts may be made by the code at pos, and by
// whose word.
// The limit counts attempts, the first one included.
func limitAt(p *rule.Pass, pos token.Pos) (limit int64, whose string) {
	l, dependency := p.Limits(pos)
	if dependency != "" {
		whose = " for " + dependency
	}
	return int64(l.MaxAttempts), whose
}
