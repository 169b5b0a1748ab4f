package retryloop

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// certificateTest reports whether a condition asks for an error of crypto/x509:
// errors.As(err, &x509.UnknownAuthorityError{}), a type assertion.
func certificateTest(cond ssa.Value) bool {
	switch v := cond.(type) {
	case *ssa.Extract:
		a, ok := v.Tuple.(*ssa.TypeAssert)
		return ok && v.Index == 1 && ofX509(a.AssertedType)
	case *ssa.Call:
		for _, a := range v.Common().Args {
			if m, ok := a.(*ssa.MakeInterface); ok && ofX509(m.X.Type()) {
				return true
			}
		}
		if fn := v.Common().StaticCallee(); fn != nil {
			if slices.ContainsFunc(fn.TypeArgs(), ofX509) {
				return true
			}
		}
	}
	return false
}

func ofX509(t types.Type) bool {
	return strings.Contains(types.TypeString(t, nil), "crypto/x509.")
}

// OnCertificateError reports whether a branch on an error of crypto/x509 leads
// to another attempt.
func (r *Region) OnCertificateError() bool {
	for _, t := range r.Tests {
		if certificateTest(t.If.Cond) {
			return true
		}
	}
	return false
}

// RetriesCertificateErrors reports whether the predicate fn certainly returns
// true for an error of crypto/x509 that it asks for.
func (r *Result) RetriesCertificateErrors(fn *ssa.Function) bool {
	return r.pkg.judge.certificateYes(fn)
}

func (j *Judge) certificateYes(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	if res.Len() == 0 || !types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool]) {
		return false
	}
	w := j.world(j.known.scope(fn), 0, false)
	w.cert = true
	return w.result(fn, -1, false) == yes && w.used
}
