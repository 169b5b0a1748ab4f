// Package settable holds predicates that go by what others may set otherwise, which
// are reported with medium confidence.
package settable

// Final may be replaced by whoever uses the package.
var Final = map[int]bool{404: true}

func retryUnlessFinal(code int) bool { return code >= 400 && !Final[code] } // want `FB1035: retryUnlessFinal calls 400, 401, 403, 409, 422 retryable`

// Checker is an interface of which others may have kinds.
type Checker interface{ Fair(code int) bool }

type outage struct{}

func (outage) Fair(code int) bool { return code >= 400 }

var public Checker = outage{}

func retryPublic(code int) bool { return public.Fair(code) } // want `FB1035: retryPublic calls 400`

// asserted comes from anywhere.
type asserted interface{ ok(code int) bool }

func (outage) ok(code int) bool { return code >= 400 }

func hold(v any) asserted {
	if a, is := v.(asserted); is {
		return a
	}
	return outage{}
}

func retryAsserted(a asserted, code int) bool { return a.ok(code) }
