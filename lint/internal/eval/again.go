package eval

import "golang.org/x/tools/go/ssa"

// exit is how a block was left.
type exit struct {
	to    []node
	doubt bool // by a branch that depends on more of the answer than is known
}

// Again reports whether the attempt leads to another one: for certain, and on some
// way at least. A branch on something of the answer that is not known is certain
// only when it goes on either way.
func (m *Machine) Again() (certain, possible bool) {
	if m.Op == nil || !m.Turns[0].Reached {
		return false, false
	}
	return m.again(true), m.again(false)
}

// again is the least set of blocks that lead to the next attempt.
func (m *Machine) again(certain bool) bool {
	reach := map[node]bool{}
	from := node{0, m.Op.Block()}
	for changed := true; changed; {
		changed = false
		for n, e := range m.edges {
			if reach[n] || len(e.to) == 0 {
				continue
			}
			ok := false
			for _, to := range e.to {
				hit := m.goal(to) || reach[to]
				if certain && e.doubt {
					if ok = hit; !ok {
						break
					}
					continue
				}
				ok = ok || hit
			}
			if ok {
				reach[n] = true
				changed = true
			}
		}
	}
	return reach[from]
}

// goal reports whether a block holds the operation at the next turn, and was come
// to.
func (m *Machine) goal(n node) bool {
	return n.turn == 1 && n.b == m.Op.Block() && m.Turns[1].Reached
}

// Passed reports whether the first turn came by a block.
func (m *Machine) Passed(b *ssa.BasicBlock) bool {
	e := m.edges[node{0, b}]
	return e != nil && len(e.to) > 0
}

// Exits are the blocks outside of the loop that its first turn may end in.
func (m *Machine) Exits() map[*ssa.BasicBlock]bool {
	exits := map[*ssa.BasicBlock]bool{}
	for n, e := range m.edges {
		for _, to := range e.to {
			if n.turn == 0 && to.turn < 0 {
				exits[to.b] = true
			}
		}
	}
	return exits
}
