package eval

import (
	"go/types"
	"regexp"
	"sort"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Wait is a place that lets time pass.
type Wait struct {
	At     ssa.Instruction // in the function at hand
	For    Value
	Ticker bool
	Weak   bool // it may be no wait at all
}

// Waits are those on one way from an attempt to the next.
type Waits struct {
	Of   []Wait
	name string // which tells them apart
}

func (w Waits) key() string { return w.name }

// String names what certainly is waited for on the way.
func (w Waits) String() string {
	var names []string
	for _, x := range w.Of {
		if !x.Weak {
			names = append(names, x.For.key())
		}
	}
	return strings.Join(names, "+")
}

// waitsOf puts the waits of a way together.
func waitsOf(all []Wait) Waits {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.For.key()
	}
	return Waits{all, strings.Join(names, "+")}
}

// waits notes that time passes. In an inner loop the same place counts once.
func (c *carrier) waits(in ssa.Instruction, d Value, ticker bool) {
	c.wait(Wait{At: c.outer(in), For: d, Ticker: ticker})
}

func (c *carrier) wait(w Wait) {
	w.Weak = w.Weak || c.repeats()
	next := make([]Waits, 0, len(c.s.waits))
	for _, ws := range c.s.waits {
		all := make([]Wait, 0, len(ws.Of)+1)
		for _, o := range ws.Of {
			if o.At != w.At || o.For.key() != w.For.key() {
				all = append(all, o)
			}
		}
		all = append(all, w)
		sort.SliceStable(all, func(i, j int) bool { return all[i].For.key() < all[j].For.key() })
		if len(all) <= 4 {
			ws = waitsOf(all)
		}
		next = append(next, ws)
	}
	c.s.waits = next
}

// repeats reports whether a helper is at hand that repeats something itself: what it waits
// for is its own.
func (c *carrier) repeats() bool {
	b := c.n.b
	for f := c.f; !f.top && f.up != nil; f = f.up {
		if _, innermost := Loops(f.fn); innermost[b] != nil {
			return true
		}
		at, ok := f.site.(ssa.Instruction)
		if !ok {
			return false
		}
		b = at.Block()
	}
	return false
}

// outer is the instruction of the function at hand by which in was come to.
func (c *carrier) outer(in ssa.Instruction) ssa.Instruction {
	for f := c.f; !f.top && f.up != nil; f = f.up {
		if f.site != nil {
			in = f.site
		}
	}
	return in
}

// receive notes the wait for what comes on a channel: that of a clock.
func (c *carrier) receive(in ssa.Instruction, ch Value) {
	for _, ch := range ways(ch) {
		switch ch := ch.(type) {
		case Expr:
			switch ch.Op {
			case "after":
				c.waits(in, ch.Args[0], false)
			case "tick":
				c.waits(in, ch.Args[0], true)
			}
		case Sym:
			if cell, ok := strings.CutSuffix(ch.Name, ".C"); ok {
				c.clock(in, cell)
			}
		case Ptr:
		}
	}
}

// clock notes the wait for a timer that is kept in a cell.
func (c *carrier) clock(in ssa.Instruction, cell string) {
	if d, ok := c.s.cell(cell + ".D"); ok {
		_, ticker := c.s.cell(cell + ".ticker")
		c.waits(in, d, ticker)
		return
	}
	c.waits(in, Unknown{}, false)
}

var (
	// sleepWord marks functions that let as much time pass as they are told.
	sleepWord = regexp.MustCompile(`(?i)^_?(.*sleep.*|wait|pause|delay|sleepctx|waitfor|waitorclosed|waitwithcontext|after|timeout)$`)
	// pauseWord marks those that decide for themselves how long.
	pauseWord = regexp.MustCompile(`(?i)sleep|backoff|back_off|pause|throttl|^wait$|wait(next|before|for)?(retry|attempt|turn)|delay`)
	// retryAfterWord marks what reads the server's word.
	retryAfterWord = regexp.MustCompile(`(?i)retry.?after|rate.?limit.*(reset|wait)|reset.?(after|time)|server.*(delay|wait)`)
	// againWord marks what says whether to go on.
	againWord = regexp.MustCompile(`(?i)^(is|check|should|can|needs?|want|do|must)?_?(retry|transient|temporary|again|retriable|retryable)`)
	// refusalWord marks what says whether an error is one of credentials.
	refusalWord = regexp.MustCompile(`(?i)^(is|needs?)_?(auth|unauth|forbidden|login|credential)`)
	jitterWord  = regexp.MustCompile(`(?i)jitter|rand`)
)

// Pauses reports whether a function lets time pass, by its name.
func Pauses(name string) bool { return sleepWord.MatchString(name) || pauseWord.MatchString(name) }

// sleeps notes the wait of a call of which only the signature and the name are
// known; ok is false for any other call.
func (c *carrier) sleeps(in ssa.Instruction, com *ssa.CallCommon, name, pkg string, args []Value) bool {
	sig := com.Signature()
	if pkg == "sync" || pkg == "os/exec" || pkg == "os" {
		return false
	}
	if !TellsNothing(sig) {
		return false
	}
	if pauseWord.MatchString(name) && jitterWord.MatchString(name) {
		c.waits(in, Rand{}, false)
		return true
	}
	var d Value
	n := 0
	for i, a := range com.Args {
		if IsDuration(a.Type()) {
			d = args[i]
			n++
		}
	}
	switch {
	case n == 1 && sleepWord.MatchString(name):
		c.waits(in, d, false)
	case pauseWord.MatchString(name) && !settingWord.MatchString(name):
		c.waits(in, Unknown{}, false)
	default:
		return false
	}
	return true
}

// dynamicMaybe notes a call of a function value of which nothing is known, and which
// may wait.
func (c *carrier) dynamicMaybe(in ssa.Instruction, com *ssa.CallCommon) {
	if c.m.inOp == 0 && !com.IsInvoke() && Static(com) == nil && TellsNothing(com.Signature()) {
		c.wait(Wait{At: c.outer(in), For: Unknown{}, Weak: true})
	}
}

// settingWord marks functions that a duration is told to.
var settingWord = regexp.MustCompile(`(?i)^(with|set|reset|update|clear|add|observe|log|debug|info|warn|error|print|timing|record)|timeout|deadline`)

// TellsNothing reports whether a function has no result but success or failure.
func TellsNothing(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		if !IsError(v.Type()) && !Is(v.Type(), types.IsBoolean) {
			return false
		}
	}
	return true
}

// IsDuration reports whether t is time.Duration.
func IsDuration(t types.Type) bool { return IsNamed(t, "time", "Duration") }

// IsNamed reports whether t is the type of a name.
func IsNamed(t types.Type, pkg, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}
