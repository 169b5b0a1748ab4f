package tree

import "github.com/forbear-go/forbear/policyfile"

// keyIndex finds the values of maps that are being built: they may have thousands of keys,
// each of which is looked up. As for [Node.Get], the first of a key counts.
type keyIndex map[*Node]map[string]*Node

func (x keyIndex) get(n *Node, key string) *Node { return x[n][key] }

// add adds a pair to a map.
func (x keyIndex) add(n *Node, p Pair) {
	n.Pairs = append(n.Pairs, p)
	if x[n] == nil {
		x[n] = map[string]*Node{}
	}
	if _, twice := x[n][p.Key]; !twice {
		x[n][p.Key] = p.Value
	}
}

// into returns the map under a key, which it adds when it is missing. Of a list of maps
// that is the last one.
func (x keyIndex) into(n *Node, key string, at policyfile.Position) *Node {
	found := x.get(n, key)
	if found != nil && found.Kind == List && len(found.Items) > 0 {
		found = found.Items[len(found.Items)-1]
	}
	if found == nil || found.Kind != Map {
		found = &Node{Kind: Map, At: at}
		x.add(n, Pair{key, at, found})
	}
	return found
}
