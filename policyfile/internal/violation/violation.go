// Package violation takes apart what the validation of a policy has joined.
package violation

import "github.com/forbear-go/forbear"

// Of returns the violations of p, in the order in which they are reported. A valid
// policy has none, and the list is nil.
func Of(p *forbear.Policy) (list []*forbear.Violation) {
	joined, ok := p.Validate().(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		list = append(list, err.(*forbear.Violation))
	}
	return list
}
