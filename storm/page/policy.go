package page

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// policy is a policy file, and the dependency whose policy the fleets get; "" is the
// first by name.
type policy struct {
	Text       string `json:"text"`
	Dependency string `json:"dependency,omitzero"`
}

// apply lays the request's policy over its scenario. It returns the names of the file's
// dependencies, in order; none without a file.
func (h *handler) apply(q *request) ([]string, error) {
	switch {
	case q.Policy == nil:
		return nil, nil
	case h.read == nil:
		return nil, errors.New("this page takes no policy file: run forbear sim run --policy FILE#DEPENDENCY")
	case len(q.Policy.Text) > maxPolicy:
		return nil, fmt.Errorf("the policy file is larger than the %d KiB that this page takes: run forbear sim run --policy FILE#DEPENDENCY", maxPolicy>>10)
	}
	all, err := h.read([]byte(q.Policy.Text))
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(all))
	if len(names) == 0 {
		return nil, errors.New("the policy file has no dependencies: write one below dependencies")
	}
	name := q.Policy.Dependency
	if name == "" {
		name = names[0]
	}
	p, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("the policy file has no dependency %q", name)
	}
	q.Scenario = q.Scenario.WithPolicy(p)
	return names, nil
}
