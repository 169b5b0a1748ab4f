package tree

import (
	"slices"
	"strconv"
	"strings"
)

// Dotted returns n with its dotted keys as nested maps, as Spring reads them:
// "a.b[0].c: 1" stands for a map with a list with a map. What stands in brackets and is
// no number is a key as it is, dots included. Where two keys say the same, the last one
// counts. n itself stays as it is.
func Dotted(n *Node) *Node {
	e := &expander{done: map[*Node]*Node{}, index: map[*Node]map[string]int{}}
	out := e.node(n, 0)
	out.Walk(func(n *Node) bool {
		lists(n)
		return true
	})
	return out
}

type expander struct {
	done  map[*Node]*Node // what aliases share
	index map[*Node]map[string]int
}

func (e *expander) node(n *Node, depth int) *Node {
	if n == nil || n.Kind == Scalar || depth > maxDepth {
		return n
	}
	if known, ok := e.done[n]; ok {
		return known
	}
	out := &Node{Kind: n.Kind, At: n.At, Twice: n.Twice}
	e.done[n] = out
	for _, item := range n.Items {
		out.Items = append(out.Items, e.node(item, depth+1))
	}
	for _, p := range n.Pairs {
		e.put(out, split(p.Key), p, depth)
	}
	return out
}

// put sets a value below n, at the end of a path of keys.
func (e *expander) put(n *Node, path []string, p Pair, depth int) {
	for len(path) > 1 {
		next := e.get(n, path[0])
		// A scalar gives way to what is said of its parts.
		if next == nil || next.Kind == Scalar {
			next = newMap(p.At)
			e.set(n, Pair{path[0], p.At, next})
		}
		n, path = next, path[1:]
	}
	value := e.node(p.Value, depth+1)
	known := e.get(n, path[0])
	if !known.Map() || !value.Map() || known == value {
		e.set(n, Pair{path[0], p.At, value})
		return
	}
	// known may be shared with an alias; what is merged is not.
	both := newMap(known.At)
	for _, q := range slices.Concat(known.Pairs, value.Pairs) {
		e.put(both, []string{q.Key}, q, maxDepth)
	}
	e.set(n, Pair{path[0], p.At, both})
}

func (e *expander) get(n *Node, key string) *Node {
	if i, ok := e.index[n][key]; ok {
		return n.Pairs[i].Value
	}
	return nil
}

func (e *expander) set(n *Node, p Pair) {
	index := e.index[n]
	if index == nil {
		index = map[string]int{}
		for i, q := range n.Pairs {
			index[q.Key] = i
		}
		e.index[n] = index
	}
	if i, ok := index[p.Key]; ok {
		n.Pairs[i] = p
		return
	}
	index[p.Key] = len(n.Pairs)
	n.Pairs = append(n.Pairs, p)
}

// lists turns a map whose keys are all indices, as "[0]", into a list. Gaps close.
func lists(n *Node) {
	type item struct {
		at    int
		value *Node
	}
	items := make([]item, 0, len(n.Pairs))
	for _, p := range n.Pairs {
		i, ok := position(p.Key)
		if !ok {
			return
		}
		items = append(items, item{i, p.Value})
	}
	if len(items) == 0 {
		return
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at - b.at })
	n.Kind, n.Pairs = List, nil
	for _, i := range items {
		n.Items = append(n.Items, i.value)
	}
}

// position reads "[3]".
func position(key string) (int, bool) {
	inner, ok := strings.CutPrefix(key, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	i, err := strconv.Atoi(inner)
	return i, ok && closed && err == nil && i >= 0
}

// split takes a key apart at its dots and brackets. One with too many parts, or with a
// part of nothing, is a key as it is.
func split(key string) (path []string) {
	if !strings.ContainsAny(key, ".[") {
		return []string{key}
	}
	rest := key
	for rest != "" {
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return []string{key}
			}
			part := rest[:end+1]
			if _, ok := position(part); !ok {
				part = part[1:end]
			}
			path, rest = append(path, part), strings.TrimPrefix(rest[end+1:], ".")
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			path, rest = append(path, rest[:end]), strings.TrimPrefix(rest[end:], ".")
		}
		if path[len(path)-1] == "" || len(path) > maxKeys {
			return []string{key}
		}
	}
	return path
}

// maxKeys bounds the parts of a dotted key.
const maxKeys = 50
