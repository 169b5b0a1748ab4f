package send

import (
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// readOnlyWord marks names and paths of requests that only read although they
// are sent by POST: queries, searches, RPCs, and the exchange of tokens. To send
// them twice does no harm, so that findings about them are less sure.
var readOnlyWord = regexp.MustCompile(`(?i)graphql|query|search|check|expand|evaluat|validat|verif|estimat|preview|describe|_bulk|token|oauth|auth|login|session|lookup|list|find|select|get|read|fetch|rpc`)

// ReadOnlyName reports whether the name of fn, or a string in it, says that
// what it sends only reads.
// Of strings, only paths and URLs are read, since a log line may say anything.
func ReadOnlyName(fn *ssa.Function) bool {
	if readOnlyWord.MatchString(fn.Name()) {
		return true
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		for _, op := range in.Operands(nil) {
			if s, ok := dataflow.ConstString(*op); ok && len(s) > 1 && (s[0] == '/' || len(s) > 8 && s[:4] == "http") && readOnlyWord.MatchString(s) {
				return true
			}
		}
	}
	return false
}
