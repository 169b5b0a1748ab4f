package policyfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/internal/former"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// former notes a key of a mapping under its former name, and returns the present one.
// Beside that it is a fault: the two may differ.
func (d *decoder) former(n, key *yaml.Node, what string, known fields) (string, bool) {
	by, renamed := former.Keys[key.Value]
	if !renamed || known[by.Instead] == nil {
		return "", false
	}
	for i, other := range strict.Resolve(n).Content {
		if i%2 == 0 && strict.Resolve(other).Value == by.Instead {
			d.Fault(key, "%s and %s are the same key of %s", strict.Quote(key.Value), strict.Quote(by.Instead), what)
		}
	}
	d.deprecated = append(d.deprecated, &Fault{
		Position: d.At(key),
		Message:  fmt.Sprintf("key %s of %s is called %s now: %s refuses the former name", strict.Quote(key.Value), what, strict.Quote(by.Instead), by.Until),
	})
	return by.Instead, true
}
