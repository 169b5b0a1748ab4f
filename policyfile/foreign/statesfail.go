package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// statesNever are the names of errors that come again with the same input. Those of
// services are known by how they end.
var (
	statesNever    = []string{"States.Permissions", "States.ParameterPathFailure", "States.ResultPathMatchFailure", "States.IntrinsicFailure", "States.QueryEvaluationError"}
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
			switch e := name.Text(); {
			case (e == "States.ALL" || e == "States.TaskFailed") && !left:
				m.refuse(name.At, "R-4", d, "classify."+e, "%s is retried, whatever failed: a request that is wrong stays wrong; name the errors that pass, or leave others out by a retrier with MaxAttempts 0", e)
			case slices.Contains(never, strings.TrimPrefix(e, "States.Http.StatusCode.")), slices.Contains(statesNever, e),
				slices.ContainsFunc(statesEndNever, func(end string) bool { return strings.HasSuffix(e, end) }):
				m.refuse(name.At, "R-4", d, "classify."+e, "%s is retried: the same request fails in the same way", e)
			}
		}
	}
}
