// Package eval carries out Go code by what is known of it: an abstract
// interpreter over the SSA form of one package. It answers what the linter asks of
// a retry: after this outcome of the operation, is there another attempt, after
// which wait, and what was sent?
//
// Values that are not known stay symbols, and a branch on one goes both ways. The
// loop at hand is carried out turn by turn, so that a wait that grows differs from
// one turn to the next, and a flag that ends the loop ends it. Functions of the
// package are entered where they are called; of others a summary says what they do.
package eval

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
)

// Limits of one run: what is beyond them is Unknown.
const (
	maxSteps = 30_000 // instructions
	inSteps  = 5_000  // the same, where no operation is at hand
	maxDepth = 6      // functions in functions
	maxVisit = 6      // of a block, before what changes in it is Unknown
	maxInner = 3      // the same, in functions that are entered
	maxLaps  = 8      // of a loop in one of them, each carried out by itself
	MaxTurns = 4      // of the loop at hand
)

// Machine carries out one function in one scene. It is used once.
type Machine struct {
	Lib   Library
	Scene Scene
	// Fn, Loop and Op are what the run is about: the turns of Loop, or the calls of Fn
	// to itself when Loop is nil, and what happens after Op.
	Fn   *ssa.Function
	Loop *Loop
	Op   *ssa.Call
	// Args are the arguments of Fn, where they are known.
	Args []Value
	Free []Value

	// Turns are what was seen at the operation, turn by turn.
	Turns []Turn
	// Returned joins what Fn returns.
	Returned Value
	// Answered is set when a response was at hand, Looked when its status, or that of
	// an error, was looked at, and Certified when it was asked for a fault of the
	// certificate.
	Answered, Looked, Certified bool
	// Asked is set when an error was asked for what only one with a status has.
	Asked bool
	Sends []Send

	// Inside carries out Fn as a part of an operation: what leaves the module in it has
	// the outcome of the scene.
	Inside bool
	// Heap is what is known of cells at the start, and Probe a call at which the values
	// are taken down.
	Heap  map[string]Value
	Probe ssa.CallInstruction
	// Seen are the arguments of Probe, Cells the heap there.
	Seen  []Value
	Cells map[string]Value
	// Left are the waits on the ways to the returns of Fn.
	Left []Waits
	// Name marks the cells of the run; Keep, unless nil, is given all that they hold.
	Name string
	Keep map[string]Value
	// Heavy are the functions in which a run was cut off, inner ones first.
	Heavy []*ssa.Function

	steps   int
	inOp    int
	turn    int // of the instruction that is carried out
	edges   map[node]*exit
	visited map[*ssa.Function]int
	over    bool // the limits were reached
	// top is the frame of Fn, and next begins the turn after the one at hand where Fn
	// calls itself, by another function too.
	top  *frame
	next func(*state)
}

// Turn is what one attempt saw.
type Turn struct {
	Reached bool
	Args    []Value // the function or the receiver last
	Waits   []Waits // the ways here since the attempt before
}

// Send is a request that leaves the module.
type Send struct {
	Method Value
	Keyed  bool
	Body   bool
	Call   ssa.CallInstruction
	Depth  int
}

// node is a block in one turn of the loop.
type node struct {
	turn int
	b    *ssa.BasicBlock
}

// frame is one function that is carried out.
type frame struct {
	fn    *ssa.Function
	args  []Value
	free  []Value
	up    *frame
	site  ssa.CallInstruction // in up
	depth int
	id    string
	env   map[slot]Value
	// top is the frame of Machine.Fn, whose turns count.
	top bool
}

// slot is a value in one turn.
type slot struct {
	turn int
	v    ssa.Value
}

// at is the turn that a value belongs to: those outside of the loop have none.
func (m *Machine) at(f *frame, v ssa.Value) int {
	if !f.top {
		return 0
	}
	if m.Loop == nil {
		return m.turn
	}
	if in, ok := v.(ssa.Instruction); ok && m.Loop.Blocks[in.Block()] {
		return m.turn
	}
	return 0
}

// Run carries out the function.
func (m *Machine) Run() {
	m.edges = map[node]*exit{}
	m.visited = map[*ssa.Function]int{}
	m.Turns = make([]Turn, MaxTurns)
	f := &frame{fn: m.Fn, args: m.Args, free: m.Free, env: map[slot]Value{}, top: true, id: "0" + m.Name}
	m.top = f
	if m.Inside {
		m.inOp = 1
	}
	st := newState()
	for k, v := range m.Heap {
		st.set(k, v)
	}
	var left *state
	if m.Returned, left = m.blocks(f, st); left != nil {
		m.Left = left.waits
	}
}

// Over reports whether the run was cut off at a limit.
func (m *Machine) Over() bool { return m.over }

// stop cuts the run off in a frame.
func (m *Machine) stop(f *frame) {
	m.over = true
	for ; !f.top && f.up != nil; f = f.up {
		m.Heavy = append(m.Heavy, f.fn)
	}
}

// blocks carries out the blocks of a frame to its returns, and yields what they
// return and leave.
func (m *Machine) blocks(f *frame, st *state) (ret Value, left *state) {
	most := maxVisit
	if !f.top {
		most = maxInner
	}
	order := reversePostorder(f.fn)
	ins := map[node]*state{{0, f.fn.Blocks[0]}: st}
	visits := map[node]int{}
	preds := map[node]map[node]bool{}
	work := []node{{0, f.fn.Blocks[0]}}
	changed := true // by the block that was carried out last
	var next []node // heads of loops, whose next turn waits until this one is done
	turns := map[node]int{}
	flow := func(from, to node, s *state) {
		if preds[to] == nil {
			preds[to] = map[node]bool{}
		}
		if (!f.top || m.Op == nil) && turns[to] < maxLaps && to.b.Dominates(from.b) {
			turns[to]++
			ins[to], preds[to], visits[to] = s.clone(), map[node]bool{from: true}, 0
			for n := range visits { // the turn is another
				if to.b.Dominates(n.b) {
					visits[n] = 0
				}
			}
			next = append(slices.DeleteFunc(next, func(n node) bool { return n == to }), to)
			return
		}
		again := changed || !preds[to][from]
		preds[to][from] = true
		if old := ins[to]; old == nil {
			ins[to] = s.clone()
		} else if old.merge(s, visits[to] >= most) {
			again = true
		}
		if again && !slices.Contains(work, to) {
			work = append(work, to)
		}
	}
	saved := m.turn
	defer func() { m.turn = saved }()
	for len(work) > 0 || len(next) > 0 {
		if len(work) == 0 {
			work, next = append(work, next[len(next)-1]), next[:len(next)-1]
		}
		// The first in the order of the code, of the earliest turn.
		best := 0
		for i, n := range work {
			if n.turn < work[best].turn || n.turn == work[best].turn && order[n.b] < order[work[best].b] {
				best = i
			}
		}
		n := work[best]
		work = slices.Delete(work, best, best+1)
		if visits[n] > most+3 {
			continue
		}
		visits[n]++
		if f.top {
			m.turn = n.turn
		}
		s := ins[n].clone()
		c := &carrier{m: m, f: f, n: n, s: s, preds: preds[n], widen: visits[n] >= most}
		if f.top {
			m.next = func(s *state) { // a call to itself begins the next turn at the entry
				to := node{n.turn + 1, f.fn.Blocks[0]}
				m.leave(n, to, false)
				if to.turn < MaxTurns {
					changed = true
					flow(n, to, s)
				}
			}
		}
		ends := c.block()
		changed = c.changed
		if m.Keep != nil {
			for k := range m.Keep {
				if _, held := s.heap.get(k); !held && strings.HasSuffix(k, "#") {
					delete(m.Keep, k) // a map of which not all keys are known any more
				}
			}
			for k, e := range s.heap.all() {
				m.Keep[k] = e.v
			}
		}
		if c.returned != nil {
			ret = join(ret, c.returned)
			if left == nil {
				left = s
			} else {
				left.merge(s, false)
			}
		}
		if !ends {
			m.branch(f, n, s, flow)
		}
	}
	return ret, left
}

// leave notes how a block of the function at hand was left.
func (m *Machine) leave(from, to node, doubt bool) {
	e := m.edges[from]
	if e == nil {
		e = &exit{}
		m.edges[from] = e
	}
	if !slices.Contains(e.to, to) {
		e.to = append(e.to, to)
	}
	e.doubt = e.doubt || doubt
}

// branch goes on with the blocks that follow n.
func (m *Machine) branch(f *frame, n node, s *state, flow func(from, to node, s *state)) {
	succs := n.b.Succs
	doubt := false
	if br, ok := n.b.Instrs[len(n.b.Instrs)-1].(*ssa.If); ok {
		cond := m.val(f, s, br.Cond)
		yes, no := truth(cond)
		doubt = yes && no && Told(cond)
		switch {
		case yes && !no:
			succs = succs[:1]
		case no && !yes:
			succs = succs[1:]
		}
		if doubt {
			s.doubt = true
		}
		if ablate.On("assume") && yes && no && len(succs) == 2 && succs[0] != succs[1] {
			for i, to := range succs {
				s2 := s.clone()
				m.assume(f, s2, br.Cond, i == 0)
				m.step(f, n, to, s2, doubt, flow)
			}
			return
		}
	}
	for _, to := range succs {
		m.step(f, n, to, s, doubt, flow)
	}
}

// step goes from a block to the next one: a turn further, at the head of the loop
// at hand, and not out of it once the operation was there.
func (m *Machine) step(f *frame, n node, to *ssa.BasicBlock, s *state, doubt bool, flow func(from, to node, s *state)) {
	next := node{n.turn, to}
	if f.top {
		if m.Loop != nil && m.Loop.Blocks[n.b] {
			switch {
			case to == m.Loop.Header:
				next.turn++
			case !m.Loop.Blocks[to]:
				m.leave(n, node{-1, to}, doubt)
				if m.Op != nil {
					return
				}
				next.turn = 0
			}
		}
		if next.turn >= MaxTurns {
			return
		}
		m.leave(n, next, doubt)
	}
	flow(n, next, s)
}

// truth says whether a condition may be true, and whether it may be false.
func truth(v Value) (yes, no bool) {
	for _, w := range ways(v) {
		c, ok := unwrap(w).(Const)
		if !ok {
			return true, true
		}
		if c.V.String() == "true" {
			yes = true
		} else {
			no = true
		}
	}
	return yes, no
}

// reversePostorder numbers the blocks of a function so that those ahead have the
// lower numbers.
func reversePostorder(fn *ssa.Function) map[*ssa.BasicBlock]int {
	order := make(map[*ssa.BasicBlock]int, len(fn.Blocks))
	seen := make(map[*ssa.BasicBlock]bool, len(fn.Blocks))
	n := len(fn.Blocks)
	var visit func(b *ssa.BasicBlock)
	visit = func(b *ssa.BasicBlock) {
		if seen[b] {
			return
		}
		seen[b] = true
		for _, s := range b.Succs {
			visit(s)
		}
		n--
		order[b] = n
	}
	visit(fn.Blocks[0])
	return order
}
