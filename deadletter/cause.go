package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
)

// What is kept of a failure, at most: texts in bytes, chains in types. A letter's
// error is longer than those in its history.
const (
	MaxError        = 2 << 10
	MaxAttemptError = 256
	MaxPanic        = 1 << 10
	MaxStack        = 8 << 10
	MaxChain        = 16
	MaxHistory      = 20 // attempts: the latest

	maxType = 128
)

// Cause says why an attempt failed, in a form that may be kept. Make it with
// [CauseOf]. The zero value says nothing.
type Cause struct {
	Class string `json:"error_class,omitempty"` // a [forbear.Class]
	Type  string `json:"error_type,omitempty"`  // the label of logs and metrics
	Error string `json:"error,omitempty"`       // redacted, at most MaxError
	// Chain has the Go types of the error and of those that it wraps, the
	// outermost first, at most MaxChain.
	Chain []string `json:"error_chain,omitempty"`
	// Panic and Stack are those of an operation that panicked, redacted.
	Panic string `json:"panic,omitempty"`
	Stack string `json:"stack,omitempty"`
}

// CauseOf returns what may be kept of a failure: its texts redacted and bounded.
func CauseOf(f forbear.Failure) Cause {
	c := Cause{Type: f.Type}
	if f.Class != forbear.ClassUnknown || f.Err != nil {
		c.Class = f.Class.String()
	}
	if f.Err == nil {
		return c
	}
	c.Error = Redact(said(f.Err.Error), MaxError)
	walk(f.Err, func(err error) bool {
		if p, ok := err.(*edge.PanicError); ok {
			c.Panic, c.Stack = Redact(value(p.Value), MaxPanic), stack(p.Stack)
		}
		if name := fmt.Sprintf("%T", err); name != markType {
			c.Chain = append(c.Chain, Clip(name, maxType))
		}
		return len(c.Chain) < MaxChain
	})
	return c
}

// markType is how an operation marks its errors for forbear, which says nothing
// about them.
var markType = fmt.Sprintf("%T", forbear.Terminal(fmt.Errorf("")))

// walk calls visit for err and for what it wraps, depth first, until that returns
// false. Its steps are bounded as well: an error may wrap itself.
func walk(err error, visit func(error) bool) {
	open := []error{err}
	for range 4 * MaxChain {
		if len(open) == 0 {
			return
		}
		err, open = open[0], open[1:]
		if err == nil {
			continue
		}
		if !visit(err) {
			return
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			open = slices.Insert(open, 0, e.Unwrap())
		case interface{ Unwrap() []error }:
			list := e.Unwrap()
			open = slices.Insert(open, 0, list[:min(len(list), MaxChain)]...)
		}
	}
}

// said returns what text returns. An error or a value that panics when it is asked
// must not take the process with it.
func said(text func() string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("(its text panicked: %T)", v)
		}
	}()
	return text()
}

// value returns the text of the value that an operation panicked with. Of a value that is
// neither text nor a number that is its type: its fields are data.
func value(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case error:
		return said(v.Error)
	case fmt.Stringer:
		return said(v.String)
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, uintptr, float32, float64:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("a value of type %T", v)
}

// stack returns the frames of a panic from where it happened on: those that
// recovered it say nothing.
func stack(text []byte) string {
	if i := bytes.Index(text, []byte("\npanic(")); i >= 0 {
		text = text[i+1:]
		for range 2 { // the call of panic, and its file
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
	}
	return Redact(string(text[:min(len(text), 2*MaxStack)]), MaxStack)
}

// Failed returns the line of an attempt that failed because of c. Number, Claim and
// times are the caller's to add.
func (c *Cause) Failed() Attempt {
	return Attempt{ErrorType: c.Type, Class: c.Class, Error: Clip(c.Error, MaxAttemptError), Chain: c.Chain}
}

// Append adds an attempt to a history, which keeps the latest MaxHistory.
func Append(history []Attempt, a Attempt) []Attempt {
	if n := len(history) - MaxHistory + 1; n > 0 {
		history = slices.Delete(history, 0, n)
	}
	return append(history, a)
}

// SetHistory gives a letter its attempts, the oldest first, and keeps the latest
// MaxHistory of them. A letter that does not know why it is dead learns it from the
// last one that failed.
func (l *Letter) SetHistory(history []Attempt) {
	l.History = history[max(len(history)-MaxHistory, 0):]
	if len(history) == 0 {
		return
	}
	l.FirstAttempt, l.LastAttempt = history[0].At, history[len(history)-1].At
	if l.Error != "" {
		return
	}
	for _, a := range slices.Backward(history) {
		if a.Error != "" {
			l.Error, l.Chain = a.Error, a.Chain
			return
		}
	}
}

// SetCause says why a letter is dead.
func (l *Letter) SetCause(c Cause) {
	l.Error, l.Chain, l.Panic, l.Stack = c.Error, c.Chain, c.Panic, c.Stack
}

// varying matches words with digits, which differ from one failure to the next: ids,
// ports, times, counts.
var varying = regexp.MustCompile(`[\pL\pN_]*\pN[\pL\pN_]*`)

// normal is the text of an error without what varies between failures of one cause.
func normal(text string) string {
	s := varying.ReplaceAllString(unquoted(Clip(text, MaxAttemptError)), "#")
	return Clip(strings.Join(strings.Fields(s), " "), MaxAttemptError)
}

// Fingerprint names the cause of a letter: the same for letters of one destination
// whose last attempts failed with the same error_type, the same innermost type of
// error and the same text, except for quoted parts and words with digits. It is
// 12 hexadecimal digits. Stores call it when they take a letter.
func (l *Letter) Fingerprint() string {
	innermost := ""
	if n := len(l.Chain); n > 0 {
		innermost = l.Chain[n-1]
	}
	text := l.Error
	if l.Panic != "" {
		text = l.Panic
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{l.Queue, l.Destination, l.Reason, l.ErrorType, innermost, normal(text)}, "\x00")))
	return hex.EncodeToString(sum[:6])
}
