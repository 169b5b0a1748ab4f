package status

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// CertificateTest reports whether a condition asks for an error of crypto/x509:
// errors.As(err, &x509.UnknownAuthorityError{}), errors.AsType, a type assertion.
// A certificate that fails once fails again, and may be an attack: R-9 forbids
// the retry.
func CertificateTest(cond ssa.Value) bool {
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
		fn := v.Common().StaticCallee()
		return fn != nil && slices.ContainsFunc(fn.TypeArgs(), ofX509)
	}
	return false
}

// ofX509 reports whether a type is one of crypto/x509, or points to one.
// The text of the type covers pointers, and instances of generic functions.
func ofX509(t types.Type) bool {
	return strings.Contains(types.TypeString(t, nil), "crypto/x509.")
}
