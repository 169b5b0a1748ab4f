package retry

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Write is a request that a retry repeats although its server may have carried it
// out.
type Write struct {
	Method string
	Open   bool // the callers choose the method
	Depth  int
	Send   eval.Send
}

// lost are the outcomes after which nobody knows whether a request was carried out.
var lost = []eval.Scene{
	{Outcome: eval.Lost, Deep: true},
	{Outcome: eval.Answered, Status: 502, Deep: true},
	{Outcome: eval.Answered, Status: 503, Deep: true},
	{Outcome: eval.Answered, Status: 500, Deep: true},
	{Outcome: eval.Answered, Status: 504, Deep: true},
}

// Writes returns the first request without a key that the retry repeats, or nil.
func (p *Package) Writes(r *Retry) *Write {
	for _, op := range r.Ops {
		carry := func(s eval.Scene) (*eval.Machine, bool) {
			m := p.Carry(r.Fn, r.Loop, op, s)
			_, again := m.Again()
			return m, again
		}
		if w := firstWrite(carry); w != nil {
			return w
		}
	}
	return nil
}

// WritesHanded is Writes for what a call hands to a retry helper.
func (p *Package) WritesHanded(h Handed) *Write {
	return firstWrite(func(s eval.Scene) (*eval.Machine, bool) {
		m, _, again := p.CarryHanded(h, s)
		return m, again
	})
}

// firstWrite looks for a write in each of the outcomes: one whose method is known, or
// one that callers may choose.
func firstWrite(carry func(eval.Scene) (*eval.Machine, bool)) *Write {
	for _, s := range lost {
		m, again := carry(s)
		if len(m.Sends) == 0 {
			return nil
		}
		if again {
			if snd := unkeyed(m, nil); snd != nil {
				return &Write{Method: eval.Text(snd.Method), Depth: snd.Depth, Send: *snd}
			}
		}
		s.Method = "POST"
		open, again := carry(s)
		if again {
			if snd := unkeyed(open, m); snd != nil {
				return &Write{Method: "POST", Open: true, Depth: snd.Depth, Send: *snd}
			}
		}
	}
	return nil
}

// unkeyed returns a write without a key that was sent, unless another run knew its
// method.
func unkeyed(m, known *eval.Machine) *eval.Send {
	for i, snd := range m.Sends {
		if t := eval.Text(snd.Method); snd.Keyed || t != "POST" && t != "PATCH" {
			continue
		}
		if known != nil && slices.ContainsFunc(known.Sends, func(o eval.Send) bool { return o.Call == snd.Call && eval.Text(o.Method) != "" }) {
			continue
		}
		return &m.Sends[i]
	}
	return nil
}

// WriterTo returns a function of the package that chooses a write for one whose callers
// choose the method, and that method; nil when none is seen to.
func (p *Package) WriterTo(fn *ssa.Function) (caller *ssa.Function, method string) {
	return p.writer(Outermost(fn), map[*ssa.Function]bool{})
}

// MethodAt is the method of the request that a call is given, or "" when callers may
// choose it.
func (p *Package) MethodAt(c *ssa.Call, req ssa.Value) string {
	m := &eval.Machine{Lib: p, Fn: c.Parent(), Probe: c}
	m.Run()
	i := slices.Index(c.Common().Args, req)
	if i < 0 || i >= len(m.Seen) {
		return "-"
	}
	for _, v := range eval.Ways(m.Seen[i]) {
		if t := m.MethodAt(v); t != "-" {
			return t
		}
	}
	return ""
}

func (p *Package) writer(fn *ssa.Function, seen map[*ssa.Function]bool) (*ssa.Function, string) {
	if seen[fn] || len(seen) > 12 {
		return nil, ""
	}
	seen[fn] = true
	for _, c := range p.callers[fn] {
		up := c.Parent()
		for _, method := range []string{"POST", "PATCH"} {
			if MentionedIn(up, func(s string) bool { return strings.EqualFold(s, method) }, 0) {
				return up, method
			}
		}
		if caller, method := p.writer(Outermost(up), seen); caller != nil {
			return caller, method
		}
	}
	return nil, ""
}

// Chooses reports whether a caller of the package chooses a write for a function.
func (p *Package) Chooses(fn *ssa.Function) bool {
	caller, _ := p.WriterTo(fn)
	return caller != nil
}
