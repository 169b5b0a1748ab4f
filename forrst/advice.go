package forrst

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/httpretry"
)

// Phase is how far the migration from the retryable boolean to the extension
// has come, as the reader sees it. Where a message has the extension, it rules
// in every phase. The zero value is Phase1.
type Phase int

// The phases of the protocol's migration.
const (
	Phase1 Phase = iota + 1 // the boolean is obeyed
	Phase2                  // the boolean is obeyed, with a warning
	Phase3                  // the boolean is ignored
)

// Result is the kind of a message, before any question of retrying.
type Result int

// The outcomes of a message.
const (
	Success    Result = iota // the call is done
	Queued                   // the server took the call to do it later: a success too
	Failed                   // the call failed; Advice.Failure says how
	Malformed                // the envelope breaks the protocol
	IDMismatch               // the envelope belongs to another request
)

// Source says what decided about a failed call. It is for logs and tests: a
// server's owner asks whose rule held a client back.
type Source string

// The sources, in the order in which they are consulted.
const (
	FromNothing          Source = "none"
	FromExtension        Source = "extension"
	FromExtensionDefault Source = "extension+default" // allowed by the extension, timed by the default
	FromFlag             Source = "retryable_flag"
	FromDefault          Source = "default"
	FromHTTP             Source = "http" // no Forrst envelope: HTTP's own rules
)

// Advice is what a message says about trying again. It is plain data: the
// Retryer decides, with its policy and its budget.
type Advice struct {
	Outcome Result
	// Failure is the message in the terms of forbear's decision. Its class is
	// Success for the outcomes Success and Queued.
	Failure  forbear.Failure
	Source   Source
	Strategy Strategy // "" where nothing may be retried, or HTTP rules
	// Deprecated is set where the retryable boolean was obeyed in Phase2.
	Deprecated bool
}

// Message is the response to one request, in the terms of HTTP. Nothing in
// it is kept.
type Message struct {
	// RequestID is the id of the request; "" accepts any response.
	RequestID string
	// Status and Header are HTTP's; 0 for another transport.
	Status int
	Header http.Header
	Body   []byte
	// Now is the time against which dates in headers are read.
	Now time.Time
}

// ErrIDMismatch says that a response belongs to another request, such as when a proxy has
// mixed up its connections: it is not advice about this one.
var ErrIDMismatch = errors.New("forrst response belongs to another request")

// Advise reads a response. It never fails: what cannot be read is advice not
// to retry, because a server that sends it may have done the work.
func (p Phase) Advise(x Message) Advice {
	resp, err := ParseResponse(x.Body)
	switch {
	case errors.Is(err, ErrForeign) && x.Status >= 300:
		return x.byHTTP()
	case err != nil:
		return broken(Malformed, "forrst_malformed", err)
	case x.RequestID != "" && !resp.belongs(x.RequestID):
		return broken(IDMismatch, "forrst_id_mismatch", ErrIDMismatch)
	case resp.queued():
		return Advice{Outcome: Queued, Failure: forbear.Failure{Class: forbear.ClassSuccess}, Source: FromNothing}
	case len(resp.Errors) == 0:
		return Advice{Failure: forbear.Failure{Class: forbear.ClassSuccess}, Source: FromNothing}
	}
	return p.failed(resp, x)
}

// byHTTP judges a response that is not a Forrst envelope, such as a proxy's page.
func (x Message) byHTTP() Advice {
	// Forrst is always POST, and a bare POST is not retried without a key.
	req := &http.Request{Method: http.MethodPost}
	resp := &http.Response{StatusCode: x.Status, Header: x.Header, Body: http.NoBody}
	a := Advice{Outcome: Failed, Source: FromHTTP, Failure: httpretry.Classify(req, resp, nil)}
	if a.Failure.Class == forbear.ClassSuccess { // a redirect, say, which carries no result
		a.Failure = forbear.Failure{Class: forbear.ClassTerminal, Type: "forrst_malformed", Err: ErrForeign}
	}
	if a.Failure.Class.Retryable() {
		a.Strategy, a.Failure.Hint.SameKey = Exponential, true
	}
	return a
}

// broken is the advice about a message that cannot be trusted: to stop. A server
// that sends such a thing has perhaps done the work.
func broken(o Result, label string, err error) Advice {
	return Advice{
		Outcome: o, Source: FromNothing,
		Failure: forbear.Failure{Class: forbear.ClassTerminal, Type: label, Err: err},
	}
}

// belongs reports whether r is the response to the request with that id. A null
// id is for requests that the server could not read, and so goes with errors
// only.
func (r *Response) belongs(id string) bool {
	if r.ID == nil {
		return len(r.Errors) > 0
	}
	return *r.ID == id
}

// queued reports whether the server keeps the call and will do it later:
// sending it again would do it twice.
func (r *Response) queued() bool {
	for _, e := range r.Extensions {
		if !is(e.URN, "replay") {
			continue
		}
		if m, ok := members(e.Data); ok && len(r.Errors) == 0 {
			switch string(m["status"]) {
			case `"queued"`, `"processing"`:
				return true
			}
		}
	}
	return false
}

// failed merges the advice for each of the errors: the stricter wins. The
// server's own waits are floors, of which the longest counts.
func (p Phase) failed(r *Response, x Message) Advice {
	g, guided := readGuidance(r.Extensions)
	floor, asked := r.serverWait(x)
	var all Advice
	for i := range r.Errors {
		a := p.one(&r.Errors[i], g, guided, floor, asked)
		if i == 0 {
			all = a
			continue
		}
		all = all.merge(a)
	}
	return all
}

// merge returns the stricter of two pieces of advice about one message.
// Stopping wins over waiting, and the longer wait over the shorter one.
func (a Advice) merge(b Advice) Advice {
	deprecated := a.Deprecated || b.Deprecated
	switch {
	case a.stops():
	case b.stops():
		a = b
	default:
		h := hint.Stricter(a.Failure.Hint, b.Failure.Hint)
		// One immediate error does not take away the other's backoff.
		h.NoBackoff = a.Failure.Hint.NoBackoff && b.Failure.Hint.NoBackoff
		if wait(b.Failure.Hint) > wait(a.Failure.Hint) {
			a.Strategy = b.Strategy
		}
		a.Failure.Hint = h
	}
	a.Deprecated = deprecated
	return a
}

// stops reports whether the advice is not to retry.
func (a Advice) stops() bool { return !a.Failure.Class.Retryable() || a.Failure.Hint.Stop }

// wait orders hints by roughly how long they make the caller wait: a base is
// the ceiling of a random draw.
func wait(h forbear.Hint) time.Duration { return max(h.Floor, h.Base) }

// one returns the advice for one error. The extension, where there is one, rules
// over the older boolean, and both over the default for the code. All retries of
// a call keep its idempotency key: the server may have done the work.
func (p Phase) one(e *Error, g guidance, guided bool, floor time.Duration, asked bool) Advice {
	row, _ := Default(e.Code)
	a := Advice{
		Outcome: Failed, Source: FromDefault, Strategy: row.Strategy,
		Failure: forbear.Failure{Class: row.class, Type: label(e.Code), Err: codeError(e.Code)},
	}
	f := &a.Failure
	f.Hint.MaxRetries = row.MaxRetries
	f.Hint.SameKey = true
	f.Hint.LongerDeadline = row.class == forbear.ClassTimeout
	flag, flagged := e.Retryable()
	switch {
	case row.class == forbear.ClassUnauthorized:
		return a // the same credentials again help no one
	case guided:
		p.byExtension(&a, g)
	case flagged && p < Phase3:
		a.Source, a.Deprecated = FromFlag, p == Phase2
		a.allow(flag)
	}
	if !f.Class.Retryable() || f.Hint.Stop {
		a.Strategy = ""
		return a
	}
	after, given := row.After, false
	if guided && g.hasAfter {
		after, given = g.after, true
	}
	a.time(after, given, floor, asked)
	if guided && !given && (a.Strategy != Immediate || g.strategy == "") {
		a.Source = FromExtensionDefault
	}
	return a
}

// byExtension applies the extension to the default for the code. Its count takes
// the place of the table's, none included; a count of zero retries means stop.
func (p Phase) byExtension(a *Advice, g guidance) {
	a.Source = FromExtension
	a.allow(g.allowed)
	a.Strategy = cmp.Or(g.strategy, a.Strategy)
	f := &a.Failure
	f.Hint.MaxRetries = 0
	if g.hasMax {
		f.Hint.MaxRetries = int(min(g.max, 1<<30))
		f.Hint.Stop = f.Hint.Stop || g.max == 0
	}
}

// allow makes the failure retryable, or stops it. The server knows its own code
// better than the table does, in both directions.
func (a *Advice) allow(yes bool) {
	if !yes {
		a.Failure.Hint.Stop = true
		return
	}
	if !a.Failure.Class.Retryable() {
		a.Failure.Class = forbear.ClassTransient
	}
	a.Strategy = cmp.Or(a.Strategy, Exponential)
}
