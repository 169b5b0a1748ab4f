package policyfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Pace says whether the gateway paces the sends to a dependency that limits its
// callers. The zero value is on.
type Pace uint8

const (
	PaceOn Pace = iota
	PaceOff
)

var paceNames = []string{"on", "off"}

// String returns "on" or "off", as the file has it.
func (p Pace) String() string { return paceNames[min(int(p), len(paceNames)-1)] }

// MarshalText implements [encoding.TextMarshaler].
func (p Pace) MarshalText() ([]byte, error) {
	if int(p) >= len(paceNames) {
		return nil, fmt.Errorf("unknown pace %d", uint8(p))
	}
	return []byte(p.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Pace) UnmarshalText(text []byte) error {
	for i, name := range paceNames {
		if name == string(text) {
			*p = Pace(i)
			return nil
		}
	}
	return fmt.Errorf("unknown pace %q: want on or off", text)
}

// pace reads whether a dependency is paced. true and false are not accepted: one
// spelling is enough.
func (r *policyReader) pace(n *yaml.Node, dep *Dependency) {
	if i, ok := r.Choice(n, "pace", paceNames...); ok {
		dep.Pace = Pace(i)
	}
}
