package status

import (
	"github.com/forbear-go/forbear/lint/internal/codeset"
)

// An assumption is what code is evaluated under: every response has the same
// status, and nothing else fails. It speaks of all statuses at once. What a
// condition says is a split of them, and what a block of code says is the set
// of those with which it can run.
type assumption struct {
	all, success codeset.Set
	grpc         bool
	cert         bool // instead, every error is the one of crypto/x509 that is asked for
}

var (
	overHTTP = &assumption{all: codeset.Range(100, 599), success: codeset.Range(200, 299)}
	overGRPC = &assumption{all: codeset.Range(0, 16), success: codeset.Of(0), grpc: true}
	// A certificate that is refused comes with no status: the set holds one
	// number, which stands for the refusal.
	ofCertificate = &assumption{all: codeset.Of(0), cert: true}
)

// over returns the assumption about HTTP statuses or gRPC codes.
func over(grpc bool) *assumption {
	if grpc {
		return overGRPC
	}
	return overHTTP
}

// A split is what is known of a condition: the statuses for which it certainly
// holds, and those for which it certainly does not. For the rest it may be
// either, and so it is for all in the zero value: what is not recognized is not
// certain.
type split struct{ yes, no codeset.Set }

// not is the split of the negated condition.
func (s split) not() split { return split{s.no, s.yes} }

// decides reports whether the status tells anything about the condition: it is
// not the same for all.
func (s split) decides(all codeset.Set) bool {
	return s.yes.Len() > 0 && s.yes != all || s.no.Len() > 0 && s.no != all
}

// always is the split of what does not depend on the status.
func (a *assumption) always(holds bool) split {
	if holds {
		return split{yes: a.all}
	}
	return split{no: a.all}
}

// succeeded is the split of a condition that holds for the successes alone, such
// as that there is no error.
func (a *assumption) succeeded() split { return split{a.success, a.all.Minus(a.success)} }

// where splits the statuses by a test of each.
func (a *assumption) where(holds func(n int64) (value, ok bool)) (s split) {
	for n := range a.all.All() {
		switch value, ok := holds(n); {
		case !ok:
		case value:
			s.yes = s.yes.Or(codeset.Of(n))
		default:
			s.no = s.no.Or(codeset.Of(n))
		}
	}
	return s
}

// A merger gathers the splits of a value that has several sources, each with
// the statuses for which it is the source. Only what all sources of a status
// agree upon is certain.
type merger struct{ live, notYes, notNo codeset.Set }

// add notes a source.
func (m *merger) add(live codeset.Set, s split) {
	m.live = m.live.Or(live)
	m.notYes = m.notYes.Or(live.Minus(s.yes))
	m.notNo = m.notNo.Or(live.Minus(s.no))
}

// split is what the sources agree upon.
func (m *merger) split() split { return split{m.live.Minus(m.notYes), m.live.Minus(m.notNo)} }
