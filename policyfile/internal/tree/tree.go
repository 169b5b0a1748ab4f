// Package tree holds configuration as a tree of values with their places,
// whatever the notation was: YAML, JSON, or another. Those who judge a file look at
// its parsed structure, and never at a string inside a value or a comment.
//
// A tree is read-only once it is built, and then safe for concurrent use. YAML's
// aliases are resolved, so that one node may stand in several places; a walk that
// must be linear remembers what it has seen, as [Node.Walk] does.
package tree

import (
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// Kind is what a node is. The zero value is Scalar.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	Map
	List
)

// Node is a value with its place. The methods accept nil, which is what they
// return for what is not there: a reader asks for a path without checking each step.
type Node struct {
	Kind  Kind
	Value string  // of a scalar
	Pairs []Pair  // of a map, in the order of the file, those of merge keys last
	Items []*Node // of a list
	// Block says that the lines of a scalar stand in the file as they are: a
	// literal block of YAML.
	Block bool
	At    policyfile.Position
	// Twice is where a key of this map stands a second time, or zero. Readers
	// differ in which of the two they take.
	Twice policyfile.Position
}

// Pair is a key of a map with its value.
type Pair struct {
	Key   string
	At    policyfile.Position
	Value *Node
}

// Get returns the value of the first of the keys that n has, or nil.
func (n *Node) Get(keys ...string) *Node {
	if n == nil {
		return nil
	}
	for _, key := range keys {
		for i := range n.Pairs {
			if n.Pairs[i].Key == key {
				return n.Pairs[i].Value
			}
		}
	}
	return nil
}

// Fold is Get for nested keys whose case does not matter, nor the dashes and
// underscores in them, as Spring compares them: maxAttempts, max_attempts and
// MAX-ATTEMPTS are one. Protobuf's JSON form has two of these spellings.
func (n *Node) Fold(keys ...string) *Node {
	for _, key := range keys {
		var found *Node
		if n != nil {
			for i := range n.Pairs {
				if Same(n.Pairs[i].Key, key) {
					found = n.Pairs[i].Value
					break
				}
			}
		}
		n = found
	}
	return n
}

// Same reports whether two keys differ in case, dashes and underscores alone.
func Same(a, b string) bool {
	i, j := 0, 0
	for {
		for i < len(a) && (a[i] == '_' || a[i] == '-') {
			i++
		}
		for j < len(b) && (b[j] == '_' || b[j] == '-') {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if lower(a[i]) != lower(b[j]) {
			return false
		}
		i, j = i+1, j+1
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Place returns where n stands, or zero.
func (n *Node) Place() (at policyfile.Position) {
	if n != nil {
		at = n.At
	}
	return at
}

// Has reports whether n is a map with the key.
func (n *Node) Has(key string) bool { return n.Get(key) != nil }

// Fields returns the pairs of a map, and none for anything else.
func (n *Node) Fields() []Pair {
	if n == nil {
		return nil
	}
	return n.Pairs
}

// Map reports whether n is a map.
func (n *Node) Map() bool { return n != nil && n.Kind == Map }

// List returns the members of a list, and none for anything else.
func (n *Node) List() []*Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// Text returns a scalar's text, and "" for anything else.
func (n *Node) Text() string {
	if n == nil || n.Kind != Scalar {
		return ""
	}
	return n.Value
}

// Number reads a number. Strings with digits in them count too, as protobuf's JSON
// form allows them, and so do YAML's other bases.
func (n *Node) Number() (float64, bool) {
	if v, err := strconv.ParseFloat(n.Text(), 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseUint(n.Text(), 0, 64)
	return float64(v), err == nil
}

// Span reads a duration such as "1.5s". A negative one does not count as read.
func (n *Node) Span() (time.Duration, bool) {
	v, err := time.ParseDuration(n.Text())
	return v, err == nil && v >= 0
}

// True reports whether n says yes, as YAML and JSON write it.
func (n *Node) True() bool { return strings.EqualFold(n.Text(), "true") }

// Walk calls visit for every node at and below n, once each, which also bounds the
// work when aliases multiply the file. Where visit returns false, the walk does not
// go below.
func (n *Node) Walk(visit func(*Node) bool) {
	seen := map[*Node]bool{}
	var step func(*Node)
	step = func(n *Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if !visit(n) {
			return
		}
		for _, p := range n.Pairs {
			step(p.Value)
		}
		for _, c := range n.Items {
			step(c)
		}
	}
	step(n)
}

// Repeated returns where a key at or below n stands twice in one map.
func (n *Node) Repeated() (at policyfile.Position, found bool) {
	n.Walk(func(n *Node) bool {
		if !found && n.Twice.Line > 0 {
			at, found = n.Twice, true
		}
		return !found
	})
	return at, found
}

// Move moves n and all below it, each to the place that to returns for its own: the text
// that was parsed stands within another.
func (n *Node) Move(to func(policyfile.Position) policyfile.Position) {
	n.Walk(func(n *Node) bool {
		n.At = to(n.At)
		if n.Twice.Line > 0 {
			n.Twice = to(n.Twice)
		}
		for i := range n.Pairs {
			n.Pairs[i].At = to(n.Pairs[i].At)
		}
		return true
	})
}

// twice returns where a key stands for the second time, or zero.
func twice(pairs []Pair) (at policyfile.Position) {
	seen := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		if seen[p.Key] {
			return p.At
		}
		seen[p.Key] = true
	}
	return at
}
