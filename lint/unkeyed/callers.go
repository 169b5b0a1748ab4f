package unkeyed

import (
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// chosen reports a repetition whose method the callers choose. It is certain
// where a caller of the package is seen to choose a write, and where the
// repetition wraps any request of net/http that it is given. Where the choice is
// left to other packages, they may send none but safe requests.
func chosen(p *rule.Pass, rep *retryloop.Repeat) {
	for _, snd := range rep.Sends {
		if !snd.Open() || snd.Keyed {
			continue
		}
		callers, beyond := p.Callers(rep, snd)
		if c := firstCaller(callers); c != nil {
			sure := plain(rep, c.Send)
			at := analysis.RelatedInformation{Pos: c.Call.Pos(), Message: "the call that sends " + c.Send.Method}
			report(p, rep, rule.Sure(sure), "retries whatever method it is given, "+c.Send.Method+" by "+name(c.Call.Parent())+" too, without an Idempotency-Key", at)
			return
		}
		if len(beyond) == 0 {
			continue
		}
		sure := rule.Sure(rep.StandsIn(snd, beyond) && plain(rep, snd))
		if rep.Shape(snd) == retryloop.OwnType {
			sure = rule.Low // which has writes to offer, as a rule, and may be used for none
		}
		report(p, rep, sure, "retries every request, whatever its method, without an Idempotency-Key")
		return
	}
}

// firstCaller returns the first caller that chooses a write, rather one whose
// names do not say that it only reads.
func firstCaller(callers []retryloop.Caller) (first *retryloop.Caller) {
	for i, c := range callers {
		if writes(c.Send.Method) && (first == nil || first.Send.Reads && !c.Send.Reads) {
			first = &callers[i]
		}
	}
	return first
}

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

// callers reports calls that hand a write to a function of another package which
// repeats whatever it is given. One finding for each such function is enough.
func callers(p *rule.Pass) {
	seen := map[string]bool{}
	for c := range p.Calls() {
		callee := dataflow.Describe(c.Common())
		if seen[callee] {
			continue
		}
		w := firstWrite(p.RetriedSends(c))
		if w == nil || w.Told && sameModule(p, c) || send.Keyed(c.Parent()) {
			continue
		}
		seen[callee] = true
		sure := !w.Reads && !send.ReadOnlyName(c.Parent())
		p.ReportAt(c, rule.Sure(sure), callee+" retries this "+w.Method+" without an Idempotency-Key", callee)
	}
}

// sameModule reports whether c calls into the module at hand, whose findings are
// shown with its own.
func sameModule(p *rule.Pass, c *ssa.Call) bool {
	return p.Module == nil || p.Module.Path == "" || dataflow.Under(dataflow.CalleePkg(c.Common()), p.Module.Path)
}

// firstWrite returns the first write without a key, or nil; rather one whose
// names do not say that it only reads.
func firstWrite(sends []fact.Send) (first *fact.Send) {
	for i, s := range sends {
		if !s.Keyed && writes(s.Method) && (first == nil || first.Reads && !s.Reads) {
			first = &sends[i]
		}
	}
	return first
}

// writes reports whether a method must not be repeated without a key.
func writes(method string) bool { return method == "POST" || method == "PATCH" }
