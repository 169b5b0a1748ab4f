package retry

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/response"
)

// Response is one that settings and findings name.
type Response = response.Response

// sceneOf is the one in which the operation has the response.
func sceneOf(r Response) eval.Scene {
	if r.GRPC {
		return eval.Scene{Outcome: eval.Coded, Status: r.Number, Deep: true}
	}
	return eval.Scene{Outcome: eval.Answered, Status: r.Number, Deep: true}
}

// Retried returns the responses after which the retry certainly begins another
// attempt, of those that accept names.
func (p *Package) Retried(r *Retry, grpc bool, accept func(Response) bool) (names []string) {
	for _, op := range r.Ops {
		var m *eval.Machine
		for _, resp := range response.All(grpc) {
			if !accept(resp) || slices.Contains(names, resp.Name) {
				continue
			}
			if m == nil || m.Looked { // what looks at no status goes on as before
				m = p.Carry(r.Fn, r.Loop, op, sceneOf(resp))
			}
			certain, _ := m.Again()
			certain = certain && (r.Pure || waitsSo(r, m))
			if certain && (m.Answered || m.Looked) && !m.Over() {
				names = append(names, resp.Name)
			} else if !m.Answered && !m.Looked {
				break
			}
		}
		if len(names) > 0 {
			break
		}
	}
	return names
}

// waitsSo reports whether the next attempt comes after a wait of the retry, where it
// goes on after a success too.
func waitsSo(r *Retry, m *eval.Machine) bool {
	for _, w := range m.Turns[1].Waits {
		if !slices.ContainsFunc(w.Of, func(x eval.Wait) bool { return slices.Contains(r.Waits, x.At) }) {
			return false
		}
	}
	return true
}

// RetriedHanded returns the responses after which a helper certainly calls again what
// is handed to it.
func (p *Package) RetriedHanded(h Handed, accept func(Response) bool) (names []string) {
	var m *eval.Machine
	certain := false
	for _, resp := range response.All(false) {
		if m == nil || m.Looked {
			m, certain, _ = p.CarryHanded(h, sceneOf(resp))
		}
		if !m.Answered && !m.Looked {
			return nil
		}
		if certain && accept(resp) && !m.Over() {
			names = append(names, resp.Name)
		}
	}
	return names
}

// OnCertificate reports whether an error of the certificate, which the retry asks for,
// leads to another attempt.
func (p *Package) OnCertificate(r *Retry) bool {
	for _, op := range r.Ops {
		m := p.Carry(r.Fn, r.Loop, op, eval.Scene{Outcome: eval.Untrusted})
		if certain, _ := m.Again(); certain && m.Certified {
			return true
		}
	}
	return false
}

// SaysOfCertificate reports whether a predicate says yes to an error of the
// certificate, which it asks for.
func (p *Package) SaysOfCertificate(fn *ssa.Function) bool {
	m := &eval.Machine{Lib: p, Fn: fn, Scene: eval.Scene{Outcome: eval.Untrusted}, Args: make([]eval.Value, len(fn.Params))}
	for i, param := range fn.Params {
		if eval.IsError(param.Type()) {
			m.Args[i] = eval.Failure{}
		}
	}
	m.Run()
	if m.Returned == nil || !m.Certified {
		return false
	}
	yes, no := eval.Truth(m.Returned)
	return yes && !no
}
