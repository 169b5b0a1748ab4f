package foreign

import (
	"regexp"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// retryKey matches the keys by which software of all kinds sets retries. Such a
// file is not recognized, and those who read the report are told that it may matter.
var retryKey = regexp.MustCompile(`(?i)^(max|num|number|perform|no)?[_.-]?(of[_.-]?)?(retry|retries|attempts|max[_.-]?attempts|retry[_.-]?(policy|on|limit|count|strategy|attempts|max|times|options?|config)|max[_.-]?retr(y|ies)([_.-]?attempts)?|backoff[_.-]?limit)$`)

// unrecognized says what is known of a file that nothing here reads.
func (o *opener) unrecognized(data []byte) {
	// Some templates are YAML by chance.
	if template(data) && mentionsRetries(data) {
		o.fault(policyfile.Position{}, "%s", isTemplate)
		return
	}
	for _, root := range o.unclaimed {
		root.Walk(func(n *tree.Node) bool {
			for _, p := range n.Pairs {
				if o.Retry.Line == 0 && retryKey.MatchString(p.Key) {
					o.Retry = policyfile.Position{File: o.name, Line: p.At.Line, Column: p.At.Column}
				}
			}
			return o.Retry.Line == 0
		})
	}
}
