// Package attempts reports retries that attempt more often than any range of
// the standard allows (FB1011).
package attempts

import (
	"fmt"
	"go/constant"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1011.
var Doc = &rule.Doc{
	ID:    "FB1011",
	Name:  "TooManyAttempts",
	Title: "attempts over the allowed range",
	Text: `The standard allows 1 to 5 retries for synchronous calls and 1 to 10 for events. Source
does not tell which of them a call is, so only counts above the widest range (or above the
configured max_attempts) are reported.`,
	Bad:      `for i := 0; i < 50; i++ { ... }`,
	Good:     `for i := 0; i < 4; i++ { ... }`,
	Standard: "R-2",
}

// Analyzer finds retries that attempt too often.
var Analyzer = rule.New(Doc, run)

func run(p *rule.Pass) {
	limit := int64(config.Current().MaxAttempts)
	for _, r := range p.Regions {
		if !r.Pure || !r.Bound.Known || r.Bound.Limit <= limit {
			continue
		}
		c := min(rule.Medium, rule.RegionConfidence(r))
		if r.Waiting || r.WaitFirst {
			c = rule.Low
		}
		p.ReportRegion(r, c, fmt.Sprintf("retries %s up to %d times; at most %d attempts are allowed", rule.Ops(r), r.Bound.Limit, limit))
	}
	for _, m := range table.Find(p, table.Attempts) {
		if m.Value == nil {
			continue
		}
		n, ok := constant.Int64Val(constant.ToInt(m.Value))
		if !ok {
			continue
		}
		if retries := m.Entry.Call + m.Entry.Field; strings.Contains(retries, "Retr") && !strings.Contains(retries, "Attempts") {
			n++
		}
		if n > limit {
			p.Report(rule.Finding{
				Confidence: rule.Medium, Pos: m.Pos(), End: m.Node.End(),
				Message: fmt.Sprintf("%s allows %d attempts; at most %d are allowed", m.Entry.Message, n, limit),
			})
		}
	}
}
