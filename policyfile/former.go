package policyfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/internal/former"
)

// former notes a key of a mapping under its former name. Beside the new one it is a
// fault: they may differ.
func (d *decoder) former(n, key *yaml.Node, what string, by former.Name) {
	for i, other := range resolve(n).Content {
		if i%2 == 0 && resolve(other).Value == by.Instead {
			d.fault(key, "", "%s and %s are the same key of %s", quote(key.Value), quote(by.Instead), what)
		}
	}
	d.deprecated = append(d.deprecated, &Fault{
		Position: d.at(key),
		Message:  fmt.Sprintf("key %s of %s is called %s now: %s refuses the former name", quote(key.Value), what, quote(by.Instead), by.Until),
	})
}
