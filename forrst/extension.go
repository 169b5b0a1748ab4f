package forrst

import (
	"encoding/json"
	"time"
)

// The URNs of extensions. Servers in the field send the vendor's spelling of
// each; both are read, the first is written.
const (
	URN        = "urn:forrst:ext:retry"
	prefix     = "urn:forrst:ext:"
	prefixLine = "urn:cline:forrst:ext:"
)

// is reports whether urn is the extension of that name, in either spelling.
func is(urn, name string) bool {
	return urn == prefix+name || urn == prefixLine+name
}

// Strategy says how a retry waits. What the wire may bring besides these
// three counts as absent.
type Strategy string

// The strategies of the extension.
const (
	Immediate   Strategy = "immediate"   // without delay
	Fixed       Strategy = "fixed"       // after After
	Exponential Strategy = "exponential" // exponential backoff starting from After
)

// known reports whether s is one of the three. The wire may bring any text.
func (s Strategy) known() bool { return s == Immediate || s == Fixed || s == Exponential }

// Retry is the data of the retry extension: a server's advice for the errors
// of one response. The zero value is a refusal.
type Retry struct {
	Allowed  bool      `json:"allowed"`
	Strategy Strategy  `json:"strategy,omitempty"`
	After    *Duration `json:"after,omitempty"`
	// MaxAttempts counts retries, not the first attempt; 0 means that the
	// server suggests none.
	MaxAttempts int `json:"max_attempts,omitempty"`
}

// Extension is one entry of an envelope's extensions: Options in a request,
// Data in a response, never both.
type Extension struct {
	URN     string          `json:"urn"`
	Options json.RawMessage `json:"options,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Extension returns r as an entry for a response. A refusal carries nothing but
// itself: a strategy beside it would contradict it.
func (r Retry) Extension() Extension {
	if !r.Allowed {
		r = Retry{} // nothing but the refusal
	}
	data, _ := json.Marshal(r) // plain data: cannot fail
	return Extension{URN: URN, Data: data}
}

// guidance is what the retry extension of a message says, read leniently: a
// part that cannot be understood is absent, and without a boolean allowed there
// is not guidance.
type guidance struct {
	allowed  bool
	strategy Strategy // "" when absent
	after    time.Duration
	hasAfter bool
	max      int64
	hasMax   bool
}

// readGuidance finds the retry extension. Of several, a refusal counts first,
// then the first that is valid.
func readGuidance(extensions []Extension) (g guidance, ok bool) {
	for _, e := range extensions {
		if !is(e.URN, "retry") {
			continue
		}
		next, valid := parseGuidance(e.Data)
		if valid && (!ok || g.allowed && !next.allowed) {
			g, ok = next, true
		}
	}
	return g, ok
}

// parseGuidance reads the data of one retry extension. ok is false when it
// does not say whether a retry is allowed, which is the one thing it has to
// say.
func parseGuidance(data json.RawMessage) (g guidance, ok bool) {
	m, ok := members(data)
	if !ok {
		return g, false
	}
	allowed, ok := boolean(m["allowed"])
	if !ok {
		return g, false
	}
	g.allowed = allowed
	if json.Unmarshal(m["strategy"], &g.strategy) != nil || !g.strategy.known() {
		g.strategy = ""
	}
	g.after, g.hasAfter = readDuration(m["after"])
	g.max, g.hasMax = whole(m["max_attempts"])
	return g, true
}

// boolean reads a JSON true or false, and nothing else: "true" in quotes is
// a mistake, and guessing at it could repeat a payment.
func boolean(raw json.RawMessage) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}
