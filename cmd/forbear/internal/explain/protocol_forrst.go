package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
)

// classifyForrst asks forrst about a response envelope. A message that is a
// JSON string is the raw body of a response that may be no envelope at all.
// Forrst calls need an idempotency key, unless the method is "idempotent". The phase
// decides how much of the extension counts, as it does in a client during the
// migration; 0 means phase 1.
//
// The HTTP method may be POST or missing, since Forrst knows no other; "idempotent"
// stands for a method that its server declares safe to repeat.
func classifyForrst(s *Situation, f *facts) (forbear.Failure, error) {
	if s.Message == nil {
		return forbear.Failure{}, errors.New("message is missing")
	}
	if s.Phase < 0 || s.Phase > int(forrst.Phase3) {
		return forbear.Failure{}, fmt.Errorf("phase %d is not 1, 2 or 3", s.Phase)
	}
	x := forrst.Message{Status: s.Status, Header: http.Header{}, Body: s.Message, Now: f.now}
	var raw string
	if json.Unmarshal(s.Message, &raw) == nil {
		x.Body = []byte(raw)
	}
	for _, h := range s.Headers {
		x.Header.Add(h[0], h[1])
	}
	switch strings.ToUpper(s.Method) {
	case "", http.MethodPost:
		f.state.NeedsKey = true
	case "IDEMPOTENT":
	default:
		return forbear.Failure{}, fmt.Errorf("method %q is unknown for forrst: want POST or idempotent", s.Method)
	}
	a := max(forrst.Phase(s.Phase), forrst.Phase1).Advise(x)
	f.noteAdvice(a)
	return a.Failure, nil
}

// noteAdvice adds what the message said, and whether the server or a default said
// it: the author of a server wants to see what its extension came to. Notes come in
// the order in which a reader asks: what happened, by whose word, and what the
// server should change.
func (f *facts) noteAdvice(a forrst.Advice) {
	switch {
	case a.Outcome == forrst.Queued:
		f.note("the server has queued the call: sending it again would do it twice")
	case a.Outcome == forrst.Malformed:
		f.note("the response breaks the protocol")
	case a.Source != forrst.FromNothing && a.Strategy != "":
		f.note("%s strategy, by %s", a.Strategy, a.Source)
	case a.Source != forrst.FromNothing:
		f.note("judged by %s", a.Source)
	}
	if a.Deprecated {
		f.note("the retryable field is deprecated: the server should send the extension %s", forrst.URN)
	}
	h := a.Failure.Hint
	if h.MaxRetries > 0 {
		f.note("at most %d retries by the server or the default for the code", h.MaxRetries)
	}
	if h.LongerDeadline {
		f.note("the retry should have a longer deadline")
	}
}
