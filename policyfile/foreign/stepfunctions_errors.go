package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// statesNever are the names of errors that come again with the same input. Those of
// services are known by how they end.
var (
	statesNever = []string{"States.Permissions", "States.ParameterPathFailure", "States.ResultPathMatchFailure", "States.IntrinsicFailure", "States.QueryEvaluationError"}
	// statesErrors are the names that begin with States.
	statesErrors = append([]string{
		"States.ALL", "States.BranchFailed", "States.DataLimitExceeded", "States.ExceedToleratedFailureThreshold", "States.HeartbeatTimeout", "States.Http.Socket",
		"States.ItemReaderFailed", "States.NoChoiceMatched", "States.ResultWriterFailed", "States.Runtime", "States.TaskFailed", "States.Timeout",
	}, statesNever...)
	statesEndNever = []string{"AccessDeniedException", "ValidationException", "ResourceNotFoundException"}
)

// errors judges which errors a state retries. A retrier with no attempts in front
// of one for all errors is how this language leaves some out.
func (m *machine) errors(d *policyfile.Dependency, retriers []*tree.Node) {
	left := false
	for _, v := range retriers {
		if n, ok := statesCount(v); ok && n == 0 {
			left = true
			continue
		}
		for _, name := range v.Get("ErrorEquals").List() {
			e := name.Text()
			switch status, http := strings.CutPrefix(e, "States.Http.StatusCode."); {
			case (e == "States.ALL" || e == "States.TaskFailed") && !left:
				m.refuse(name.At, "R-4", d, "classify."+e, "%s is retried, whatever failed: name the transient errors, or exclude the others by a retrier with MaxAttempts 0", e)
			case http && len(span(status)) != 1: // names are matched whole
				m.misspelt(name.At, d, e, "is not an error of Step Functions, and nothing matches it", ": write one status, as in States.Http.StatusCode.503")
			case http:
				m.terminals(name.At, d, status, "")
			case strings.HasPrefix(e, "States.") && !slices.Contains(statesErrors, e):
				m.misspelt(name.At, d, e, "is not an error of Step Functions, and nothing matches it", nearest.Hint(e, statesErrors, ""))
			case slices.Contains(statesNever, e),
				slices.ContainsFunc(statesEndNever, func(end string) bool { return strings.HasSuffix(e, end) }):
				m.refuse(name.At, "R-4", d, "classify."+e, "%s is retried: the same request fails the same way", e)
			}
		}
	}
}

// comesBack returns the Catch of a state that leads back to it, or nil. bounded says that
// a choice stands between, which may count: a Catch that needs none comes first.
func comesBack(level map[string]*tree.Node, name string) (catch *tree.Node, bounded bool) {
	for _, c := range level[name].Get("Catch").List() {
		if leads(level, c.Get("Next").Text(), name, false, map[string]bool{}) {
			return c, false
		}
		if catch == nil && leads(level, c.Get("Next").Text(), name, true, map[string]bool{}) {
			catch = c
		}
	}
	return catch, catch != nil
}

// leads reports whether what follows a state comes to another, perhaps by choices.
// A way back over more states than most is not looked for.
func leads(level map[string]*tree.Node, from, to string, choices bool, seen map[string]bool) bool {
	const most = 100
	if from == to {
		return true
	}
	n := level[from]
	if n == nil || seen[from] || len(seen) == most {
		return false
	}
	seen[from] = true
	next := []string{n.Get("Next").Text()}
	if choices {
		next = append(next, n.Get("Default").Text())
		for _, choice := range n.Get("Choices").List() {
			next = append(next, choice.Get("Next").Text())
		}
	}
	return slices.ContainsFunc(next, func(s string) bool { return leads(level, s, to, choices, seen) })
}
