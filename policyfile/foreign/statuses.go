package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// never are the statuses that R-4 forbids to retry.
var never = []string{"400", "401", "403", "404", "409", "422"}

// statuses refuses those of a list that R-4 forbids to retry.
func (r *reader) statuses(d *policyfile.Dependency, codes []*tree.Node) {
	for _, c := range codes {
		if slices.Contains(never, c.Text()) {
			r.terminals(c.At, d, c.Text())
		}
	}
}

// terminals refuses the statuses of a word that R-4 forbids to retry.
func (r *reader) terminals(at policyfile.Position, d *policyfile.Dependency, word string) {
	for _, status := range terminal(word) {
		r.refuse(at, "R-4", d, "classify.http_"+status, "%s is retried: the same request gets the same response", status)
	}
}

// terminal returns the statuses that R-4 forbids to retry among those that a word
// stands for: "404", "4xx" or "400-499".
func terminal(word string) (found []string) {
	from, to, _ := strings.Cut(strings.ToLower(strings.TrimSpace(word)), "-")
	if class, ok := strings.CutSuffix(from, "xx"); ok {
		from, to = class+"00", class+"99"
	}
	for _, status := range never {
		if status == from || len(from) == 3 && len(to) == 3 && from <= status && status <= to {
			found = append(found, status)
		}
	}
	return found
}
