package retry

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/response"
)

// predicate notes for which responses a function that is given one, its status or an
// error says yes.
func (p *Package) predicate(fn *ssa.Function, f *Fact) bool {
	for _, grpc := range []bool{false, true} {
		for _, resp := range response.All(grpc) {
			yes, no, asked := p.Says(fn, resp)
			if !asked {
				break
			}
			switch {
			case yes && !grpc:
				f.Yes = append(f.Yes, resp.Number)
			case no && !grpc:
				f.No = append(f.No, resp.Number)
			case yes:
				f.YesCode = append(f.YesCode, resp.Number)
			case no:
				f.NoCode = append(f.NoCode, resp.Number)
			}
		}
	}
	return len(f.Yes)+len(f.No)+len(f.YesCode)+len(f.NoCode) > 0
}

// Says asks a predicate about a response: whether it is certainly true, or false, and
// whether it looked at the response at all.
func (p *Package) Says(fn *ssa.Function, resp Response) (yes, no, asked bool) {
	m := &eval.Machine{Lib: p, Fn: fn, Scene: sceneOf(resp), Args: make([]eval.Value, len(fn.Params))}
	given := false
	for i, param := range fn.Params {
		t := param.Type()
		switch {
		case eval.IsResponse(t):
			if resp.GRPC {
				return false, false, false
			}
			m.Args[i] = eval.Answer{}
		case eval.IsError(t):
			m.Args[i] = eval.Failure{}
			if hasResponseParam(fn) {
				m.Args[i] = eval.Nil{}
				continue
			}
		case isCode(t) == resp.GRPC && isInt(t) && (resp.GRPC || eval.IsStatusName(param.Name())):
			n := eval.Int(resp.Number)
			n.Told = true
			m.Args[i] = n
			m.Looked = true
		default:
			continue
		}
		given = true
	}
	if !given {
		return false, false, false
	}
	m.Run()
	v := m.Returned
	if t, ok := v.(eval.Tuple); ok && len(t.Of) > 0 {
		v = t.Of[0]
	}
	if v == nil || m.Over() {
		return false, false, m.Looked
	}
	y, n := eval.Truth(v)
	return y && !n, n && !y, m.Looked
}

func hasResponseParam(fn *ssa.Function) bool {
	return slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool { return eval.IsResponse(p.Type()) })
}

// isCode reports whether t is the type of gRPC's codes.
func isCode(t types.Type) bool { return eval.IsNamed(t, "google.golang.org/grpc/codes", "Code") }
