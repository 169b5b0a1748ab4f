package retry

import (
	"go/constant"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Class says how a wait develops from one attempt to the next.
type Class int

// The classes, from the one that says least.
const (
	Pluggable   Class = iota // decided elsewhere: no judgment
	Immediate                // no wait at all
	Fixed                    // the same every time
	Growing                  // grows, without randomness
	EqualJitter              // half fixed, half random
	Jittered                 // random
	Server                   // named by the server
)

// String says it as a sentence goes on: "its wait is ...".
func (c Class) String() string {
	return [...]string{"decided elsewhere", "none", "the same every time", "growing without randomness", "half random", "random", "named by the server"}[c]
}

// Delay says how the waits of a retry develop.
type Delay struct {
	Class Class
	// Value is the wait of a Fixed class, where Known.
	Value time.Duration
	Known bool
	Name  string // of what holds the wait, or ""
	// Mixed says that it is so where the server says nothing.
	Mixed  bool
	Ticker bool
}

// delay classifies the waits of an attempt: those of each turn are compared with
// those of the turn before. Of several ways the one that is worst counts, but a wait
// that is decided elsewhere is not judged.
func (p *Package) delay(a *attempt) (d Delay) {
	var fixed []map[string]bool // by turn, the waits without chance
	elsewhere, random, equal, server, some, maybe := false, false, false, false, false, false
	for _, ways := range a.turns {
		keys := map[string]bool{}
		for _, w := range ways {
			weak := len(w.Of) > 0
			w.Of = slices.DeleteFunc(slices.Clone(w.Of), func(x eval.Wait) bool { return x.Weak })
			if len(w.Of) == 0 {
				maybe = maybe || weak
				continue
			}
			some = true
			for _, x := range w.Of {
				d.Ticker = d.Ticker || x.Ticker
			}
			sum := flatten(w)
			for _, v := range sum {
				switch classOf(v) {
				case Pluggable:
					elsewhere = true
				case Jittered:
					random = true
				case EqualJitter:
					equal = true
				case Server:
					server = true
				case Fixed:
					if k := eval.Key(v); k != "0" {
						keys[k] = true
						d.note(v)
					}
				}
			}
		}
		if len(ways) > 0 {
			fixed = append(fixed, keys)
		}
	}
	d.Class = Immediate
	any := false
	for i, keys := range fixed {
		any = any || len(keys) > 0
		if i > 0 && len(keys) > 0 && len(fixed[i-1]) > 0 && !sameKeys(keys, fixed[i-1]) {
			d.Class = Growing
		}
	}
	switch {
	case elsewhere:
		d.Class = Pluggable
	case any && d.Class != Growing && !random && !equal:
		d.Class = Fixed
	case d.Class == Growing && !random:
	case equal:
		d.Class = EqualJitter
	case random:
		d.Class = Jittered
	case server:
		d.Class = Server
	case some && !any || maybe && d.Class == Immediate:
		d.Class = Pluggable
	}
	d.Mixed = server && (d.Class == Fixed || d.Class == Growing)
	if d.Class != Fixed {
		d.Known = false
	}
	return d
}

func sameKeys(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// flatten is what one way waits in all: each value that the sum of its waits may
// have.
func flatten(w eval.Waits) []eval.Value {
	sums := []eval.Value{nil}
	for _, x := range w.Of {
		var next []eval.Value
		for _, s := range sums {
			for _, v := range eval.Ways(x.For) {
				if s == nil {
					next = append(next, v)
				} else {
					next = append(next, eval.Expr{Op: "+", Args: []eval.Value{s, v}})
				}
			}
		}
		if len(next) > 16 {
			return []eval.Value{eval.Unknown{}}
		}
		sums = next
	}
	return sums
}

// classOf is the class of one wait by itself: Fixed for what has no chance in it.
func classOf(v eval.Value) Class {
	switch v := v.(type) {
	case eval.Const, eval.Sym:
		return Fixed
	case eval.Server:
		return Server
	case eval.Rand:
		return Jittered
	case eval.Expr:
		return classOfExpr(v)
	}
	return Pluggable
}

func classOfExpr(e eval.Expr) Class {
	worst := Fixed
	for _, a := range e.Args {
		switch c := classOf(a); c {
		case Pluggable:
			if !eval.Random(e) {
				return Pluggable
			}
		case Server:
			return Server
		case Jittered, EqualJitter:
			worst = max(worst, c)
		}
	}
	if worst == Jittered && e.Op == "+" && len(e.Args) == 2 && (halves(e.Args[0], e.Args[1]) || halves(e.Args[1], e.Args[0])) {
		return EqualJitter
	}
	return worst
}

// halves reports whether one value is half of something, and the other a random part
// of that half.
func halves(fixed, random eval.Value) bool {
	of := drawnFrom(random)
	if of == nil || classOf(fixed) != Fixed {
		return false
	}
	if eval.Key(of) == eval.Key(fixed) {
		_, isExpr := fixed.(eval.Expr)
		_, isConst := fixed.(eval.Const)
		return isExpr || isConst
	}
	return false
}

// drawnFrom is the value up to which a wait is drawn, or nil.
func drawnFrom(v eval.Value) eval.Value {
	switch v := v.(type) {
	case eval.Rand:
		return v.Of
	case eval.Expr:
		if v.Op == "*" && len(v.Args) == 2 {
			for i, a := range v.Args {
				if r, ok := a.(eval.Rand); ok && eval.Key(r.Of) == "1" {
					return v.Args[1-i]
				}
			}
		}
	}
	return nil
}

// note keeps the value or the name of a wait, for messages.
func (d *Delay) note(v eval.Value) {
	switch v := v.(type) {
	case eval.Const:
		if n, ok := constant.Int64Val(constant.ToInt(v.V)); ok && !d.Known {
			d.Value, d.Known = time.Duration(n), true
		}
	case eval.Sym:
		if d.Name == "" {
			d.Name = v.Name[strings.LastIndexAny(v.Name, " ./")+1:]
		}
	case eval.Expr:
		for _, a := range v.Args {
			if s, ok := a.(eval.Sym); ok {
				d.note(s)
			}
		}
	}
}
