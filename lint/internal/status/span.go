package status

import "go/token"

// A span is what an integer may be: the numbers from lo to hi, both included.
type span struct{ lo, hi int64 }

// one reports whether s is a single number.
func (s span) one() bool { return s.lo == s.hi }

// or returns the least span that holds both.
func (s span) or(t span) span { return span{min(s.lo, t.lo), max(s.hi, t.hi)} }

// arithmetic returns what simple arithmetic makes of two spans; ok is false when
// that is not known.
func (s span) arithmetic(op token.Token, t span) (r span, ok bool) {
	switch {
	case op == token.ADD:
		return span{s.lo + t.lo, s.hi + t.hi}, true
	case op == token.SUB:
		return span{s.lo - t.hi, s.hi - t.lo}, true
	case !t.one() || t.lo <= 0:
		return span{}, false
	case op == token.MUL:
		return span{s.lo * t.lo, s.hi * t.lo}, true
	case op == token.QUO:
		return span{s.lo / t.lo, s.hi / t.lo}, true
	case op == token.REM && s.one():
		return span{s.lo % t.lo, s.lo % t.lo}, true
	}
	return span{}, false
}

// compare reports whether a comparison certainly holds; ok is false when it
// holds for some of the numbers only.
func (s span) compare(op token.Token, t span) (holds, ok bool) {
	switch op {
	case token.EQL:
		apart := s.hi < t.lo || t.hi < s.lo
		return !apart, apart || s.one() && t.one()
	case token.NEQ:
		equal, ok := s.compare(token.EQL, t)
		return !equal, ok
	case token.LSS:
		return s.hi < t.lo, s.hi < t.lo || s.lo >= t.hi
	case token.LEQ:
		return s.hi <= t.lo, s.hi <= t.lo || s.lo > t.hi
	case token.GTR:
		return t.compare(token.LSS, s)
	case token.GEQ:
		return t.compare(token.LEQ, s)
	}
	return false, false
}
