package forbear

import "github.com/forbear-go/forbear/internal/enum"

// The enumerations of a Policy read and write themselves by the names that
// policy files use.

var (
	jitterNames  = []string{"default", "full", "decorrelated"}
	keyModeNames = []string{"reuse", "generate", "refuse"}
)

// String returns "default", "full" or "decorrelated".
func (j Jitter) String() string { return enum.Name(jitterNames, uint8(j)) }

// MarshalText implements [encoding.TextMarshaler].
func (j Jitter) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (j *Jitter) UnmarshalText(text []byte) error {
	i, err := enum.Parse("jitter", jitterNames, text)
	*j = Jitter(i)
	return err
}

// String returns "reuse", "generate" or "refuse".
func (m KeyMode) String() string { return enum.Name(keyModeNames, uint8(m)) }

// MarshalText implements [encoding.TextMarshaler].
func (m KeyMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *KeyMode) UnmarshalText(text []byte) error {
	i, err := enum.Parse("idempotency mode", keyModeNames, text)
	*m = KeyMode(i)
	return err
}
