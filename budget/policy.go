package budget

import (
	"cmp"
	"math"
	"time"

	"github.com/forbear-go/forbear/internal/enum"
)

// Policy is the rolling-window budget of R-7: in any Window, retries may
// be at most Ratio of the initial requests.
type Policy struct {
	Ratio  float64       `json:"ratio,omitzero"`  // default 0.20
	Window time.Duration `json:"window,omitzero"` // default 30 s
	// MinRetries is the number of retries per window that are allowed even to
	// a client with few requests. Default 3; none when the policy is strict. More
	// than [MaxMinRetries] need a waiver of R-7. Each instance has a floor of its own,
	// which [Policy.AllowedEach] adds up; a [Fleet] has one for all.
	MinRetries int `json:"min_retries,omitzero"`
	// Of is what Ratio is a part of.
	Of RatioOf `json:"of,omitzero"`
	// MaxMultiplier is another spelling of Ratio: 1.10 lets retries add 10 %
	// to the initial requests.
	MaxMultiplier float64 `json:"max_multiplier,omitzero"`
	// RoundUp asks the question as the budget article's sketch does, before
	// the retry is counted: one is allowed while retries / requests is still
	// below Ratio. A fraction of a retry then counts as a whole one, so that
	// one more may be sent than Ratio says.
	RoundUp bool `json:"round_up,omitzero"`
}

// RatioOf names the whole that a budget's ratio is a part of.
type RatioOf uint8

const (
	OfInitial RatioOf = iota // the initial requests: at 20 %, 1,000 become 1,200
	OfTotal                  // all requests: at 20 %, 1,000 become 1,250
)

// The figures of the standard.
const (
	DefaultRatio      = 0.20
	DefaultWindow     = 30 * time.Second
	DefaultMinRetries = 3
)

// MaxMinRetries is the highest floor of a [Policy] that needs no waiver of R-7: as
// many retries as two synchronous calls have by the highest count of R-2. A higher
// floor is a budget of its own, whatever the ratio says.
const MaxMinRetries = 10

// WithDefaults returns b with its zero fields filled in, and with MaxMultiplier
// read as the Ratio that it stands for.
func (b Policy) WithDefaults() Policy {
	if b.MaxMultiplier != 0 {
		// 1.2 - 1 is a hair under 0.2 in binary, which is more than a hair in text.
		b.Ratio, b.MaxMultiplier = math.Round((b.MaxMultiplier-1)*1e9)/1e9, 0
	} else {
		b.Ratio = cmp.Or(b.Ratio, DefaultRatio)
	}
	b.Window = cmp.Or(b.Window, DefaultWindow)
	b.MinRetries = cmp.Or(b.MinRetries, DefaultMinRetries)
	return b
}

var ratioOfNames = []string{"initial", "total"}

// String returns "initial" or "total".
func (o RatioOf) String() string { return enum.Name(ratioOfNames, uint8(o)) }

// MarshalText implements [encoding.TextMarshaler].
func (o RatioOf) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *RatioOf) UnmarshalText(text []byte) error {
	i, err := enum.Parse("whole of a ratio", ratioOfNames, text)
	*o = RatioOf(i)
	return err
}
