package forbear

import "fmt"

// The enumerations of a Policy read and write themselves by the names that
// policy files use.

var (
	jitterNames  = []string{"default", "full", "decorrelated"}
	keyModeNames = []string{"reuse", "generate", "refuse"}
	ratioOfNames = []string{"initial", "total"}
)

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func indexOf(what string, names []string, text []byte) (uint8, error) {
	for i, name := range names {
		if name == string(text) {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %v", what, text, names)
}

// String returns "default", "full" or "decorrelated".
func (j Jitter) String() string { return nameOf(jitterNames, uint8(j)) }

// MarshalText implements [encoding.TextMarshaler].
func (j Jitter) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (j *Jitter) UnmarshalText(text []byte) error {
	i, err := indexOf("jitter", jitterNames, text)
	*j = Jitter(i)
	return err
}

// String returns "reuse", "generate" or "refuse".
func (m KeyMode) String() string { return nameOf(keyModeNames, uint8(m)) }

// MarshalText implements [encoding.TextMarshaler].
func (m KeyMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *KeyMode) UnmarshalText(text []byte) error {
	i, err := indexOf("idempotency mode", keyModeNames, text)
	*m = KeyMode(i)
	return err
}

// String returns "initial" or "total".
func (o RatioOf) String() string { return nameOf(ratioOfNames, uint8(o)) }

// MarshalText implements [encoding.TextMarshaler].
func (o RatioOf) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *RatioOf) UnmarshalText(text []byte) error {
	i, err := indexOf("whole of a ratio", ratioOfNames, text)
	*o = RatioOf(i)
	return err
}
