package unkeyed

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// name names a function for people.
func name(fn *ssa.Function) string {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn.Name()
}

// clients reports clients of net/http that repeat every request by themselves
// and are handed on to code that may send any: a generated client, an SDK. It is
// a likely fault only, since that code may send none but reads.
func clients(p *rule.Pass) {
	for c := range p.Calls() {
		if p.StandsFor(c) && !send.Keyed(c.Parent()) && handedOn(p, c) {
			p.ReportAt(c, rule.Medium, dataflow.Describe(c.Common())+" makes a client that retries every request, whatever its method, without an Idempotency-Key")
		}
	}
}

// handedOn reports whether the client that c makes is given to a function of
// another package.
func handedOn(p *rule.Pass, c *ssa.Call) bool {
	for o := range dataflow.Refs[*ssa.Call](c) {
		if pkg := dataflow.CalleePkg(o.Common()); pkg != "" && pkg != p.Pkg.Path() && pkg != "net/http" && slices.Contains(o.Common().Args, ssa.Value(c)) {
			return true
		}
	}
	return false
}

// elsewhere reports calls that hand a write to a function of another package
// which repeats whatever it is given. One finding for each such function is enough.
func elsewhere(p *rule.Pass) {
	seen := map[*types.Func]bool{}
	for c := range p.Calls() {
		callee := dataflow.Callee(c.Common())
		if callee == nil || seen[callee] || !p.Judges(c.Pos()) {
			continue
		}
		w := retryloop.FirstWrite(p.RetriedSends(c))
		// A fault of the module at hand is shown where it stands.
		if w == nil || w.Told && !p.Known.Foreign(dataflow.CalleePkg(c.Common())) || send.Keyed(c.Parent()) {
			continue
		}
		seen[callee] = true
		sure := !w.Reads && !send.ReadOnlyName(c.Parent())
		named := dataflow.Describe(c.Common())
		p.ReportAt(c, rule.Sure(sure), named+" retries this "+w.Method+" without an Idempotency-Key", named)
	}
}
