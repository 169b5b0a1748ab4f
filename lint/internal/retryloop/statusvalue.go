package retryloop

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// statusValue returns the assumed value of v when v is the status.
func (w *world) statusValue(v ssa.Value) (int64, bool) {
	switch v := v.(type) {
	case *ssa.Convert:
		return w.statusValue(v.X)
	case *ssa.ChangeType:
		return w.statusValue(v.X)
	case *ssa.Parameter:
		for i, p := range w.scope.fn.Params {
			if p == v {
				n, ok := w.params[i]
				return n, ok
			}
		}
		return 0, false
	case *ssa.Phi:
		if w.grpc {
			return 0, false
		}
		found := false
		for _, e := range v.Edges {
			if _, isConst := e.(*ssa.Const); isConst || e == v {
				continue
			}
			if !IsStatus(e) {
				return 0, false
			}
			found = true
		}
		return w.status, found
	case *ssa.UnOp:
		if a, ok := v.X.(*ssa.Alloc); ok && v.Op == token.MUL && !w.grpc {
			found := false
			for _, s := range w.scope.storesTo(a) {
				if IsStatus(s.Val) {
					found = true
				} else if _, isConst := s.Val.(*ssa.Const); !isConst {
					return 0, false
				}
			}
			return w.status, found
		}
	}
	if w.grpc {
		return w.status, isCode(v)
	}
	return w.status, IsStatus(v)
}

// isCode reports whether v is a gRPC code taken from an error or a status.
func isCode(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && IsNamed(v.Type(), "google.golang.org/grpc/codes", "Code") && CalleeName(c.Common()) == "Code"
}
