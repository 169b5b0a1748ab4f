package policyfile

import (
	"go.yaml.in/yaml/v4"

	names "github.com/forbear-go/forbear/internal/enum"
)

// Pace says whether the gateway paces the sends to a dependency that limits its
// callers. The zero value is on.
type Pace uint8

const (
	PaceOn Pace = iota
	PaceOff
)

var paceNames = []string{"on", "off"}

// String returns the word of a policy file.
func (p Pace) String() string { return names.Name(paceNames, uint8(p)) }

// MarshalText implements [encoding.TextMarshaler].
func (p Pace) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Pace) UnmarshalText(text []byte) error {
	i, err := names.Parse("pace", paceNames, text)
	*p = Pace(i)
	return err
}

// pace reads whether a dependency is paced. true and false are not accepted: one
// spelling is enough.
func (r *policyReader) pace(n *yaml.Node, dep *Dependency) {
	if i, ok := r.Choice(n, "pace", paceNames...); ok {
		dep.Pace = Pace(i)
	}
}
