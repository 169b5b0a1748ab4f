// Package explain is the command explain: whether a failed call would be tried
// again, when, and by which rule. It asks the real classifiers and the real
// decision, so that its verdict is what the library does and not a second opinion.
//
// A [Situation] is the question, by flags or as a line of JSON. Its protocol turns
// it into a failure (protocol.go), [Explain] asks the decision, and its text or the JSON
// of [Verdict] is what a reader gets. The linter asks here too, what a policy retries.
package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/nearest"
)

// Situation is one failed attempt and the facts around it. It begins as [New] makes it,
// with what holds where nothing is said; Protocol, and what that protocol needs, must be
// added. Its JSON names are a format that other programs write: a field may be added, and
// none changes its meaning. A Situation is plain data and may be reused.
type Situation struct {
	ID       string `json:"id"`
	Profile  string `json:"profile"`
	Kind     string `json:"kind"`
	Protocol string `json:"protocol"`

	// The request. Replayable begins as true: most bodies are.
	Method         string `json:"method"`
	IdempotencyKey string `json:"idempotency_key"`
	Replayable     bool   `json:"replayable"`
	TokenRefresh   bool   `json:"token_refresh"`

	// The call so far. AttemptsMade begins as 1, the attempt that failed; a missing
	// remaining_ms means that the caller has no deadline, and an empty now the clock's.
	AttemptsMade int    `json:"attempts_made"`
	DNSFailures  int    `json:"dns_failures"`
	ElapsedMS    int64  `json:"elapsed_ms"`
	RemainingMS  *int64 `json:"remaining_ms"`
	Now          string `json:"now"`

	// What stands around the call. A missing budget is never spent. Healthy begins as
	// true, as for a dependency without a health gate.
	Breaker        string  `json:"breaker"`
	Healthy        bool    `json:"healthy"`
	ExhaustedBelow bool    `json:"exhausted_below"`
	Budget         *Budget `json:"budget"`

	// What failed, in the terms of the protocol: http, grpc, net and forrst.
	Status  int        `json:"status"`
	Headers [][]string `json:"headers"`

	Code     string     `json:"code"`
	Trailers [][]string `json:"trailers"`

	Error string `json:"error"`

	Message json.RawMessage `json:"message"`
	Phase   int             `json:"phase"`

	// Policy holds fields of a policy file.
	Policy json.RawMessage `json:"policy"`
	// Base is the policy that Policy is laid over; nil means that of Profile
	// and Kind.
	Base *forbear.Policy `json:"-"`
	// Service is the one that calls, or "": where the policy names another owner,
	// it does not retry.
	Service string `json:"-"`
}

// Budget is the use of a dependency's budget in its window, as counts of requests
// and retries: what an operator reads off the metrics. Both counts are those before
// the attempt in question.
type Budget struct {
	Initial int64 `json:"initial"`
	Retries int64 `json:"retries"`
}

// New returns a situation in which nothing is known but that one attempt has failed.
func New() Situation { return Situation{AttemptsMade: 1, Replayable: true, Healthy: true} }

// Decode reads a situation from JSON. It refuses what it does not know, but
// returns the id whenever there is one. A misspelt field would otherwise be
// judged as another question. The id lets a program match even a refusal to what it
// sent.
func Decode(data []byte) (Situation, error) {
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&fields); err != nil {
		return Situation{}, notJSON(err)
	}
	s := New()
	_ = json.Unmarshal(fields["id"], &s.ID) // the strict reading below complains
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("text after the situation")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			// Most unknown fields are a slip of one letter in a script that no one watches.
			return s, fmt.Errorf("unknown field %q%s", name, nearest.Hint(name, known, ""))
		}
	}
	dec = json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // those of nested objects
	if err := dec.Decode(&s); err != nil {
		return s, notJSON(err)
	}
	if s.ID == "" {
		return s, errors.New("id is missing")
	}
	return s, nil
}

// known are the names of a situation's fields, read off the type itself: a list
// beside it would be forgotten.
var known = func() (names []string) {
	for f := range reflect.TypeFor[Situation]().Fields() {
		if name := f.Tag.Get("json"); name != "-" {
			names = append(names, name)
		}
	}
	return names
}()

// notJSON says in the situation's own terms what the JSON reader met. The reader's
// own words name Go types, which mean nothing to a caller in another language.
func notJSON(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return fmt.Errorf("not a situation in JSON: %w", err)
	case e.Field == "":
		return fmt.Errorf("a situation is a JSON object, not %s", article(e.Value))
	default:
		return fmt.Errorf("%s cannot be %s", e.Field, article(e.Value))
	}
}

// article puts one before the name of a kind of JSON.
func article(kind string) string {
	if strings.HasPrefix(kind, "a") || strings.HasPrefix(kind, "o") {
		return "an " + kind // array, object
	}
	return "a " + kind
}

// facts are a situation in the terms of the decision, with the notes that its
// reading left. It lives for one explanation. Classifiers of a protocol may add to
// state and notes, and to nothing else.
type facts struct {
	policy  forbear.Policy
	state   forbear.State
	failure forbear.Failure
	now     time.Time
	notes   []string
}

// maxCount bounds counts and times of a situation, far above what any policy
// allows, so that sums cannot overflow. Milliseconds of this size are 34 years.
const maxCount = 1 << 40

// facts classifies the situation and gathers its state. Where the policy has
// forbear generate keys, a call without one counts as having one, as it would in
// the transport, and where it says that all is idempotent none is needed. Faults of form come before those of the protocol, since a
// number out of range would make the classifier's error misleading.
func (s *Situation) facts() (f facts, err error) {
	if err := s.check(); err != nil {
		return f, err
	}
	f.now = time.Now()
	if s.Now != "" {
		if f.now, err = time.Parse(time.RFC3339, s.Now); err != nil {
			return f, fmt.Errorf("now %q is not an RFC 3339 time", s.Now)
		}
	}
	if f.policy, err = s.policy(); err != nil {
		return f, err
	}
	protocol, err := s.protocol()
	if err != nil {
		return f, err
	}
	f.state = s.state(f.now)
	if f.state.Breaker, err = s.breaker(); err != nil {
		return f, err
	}
	if owner := f.policy.Owner; owner != "" && s.Service != "" && owner != s.Service {
		f.state.NotOwner = true
		f.note("%s owns the retries, but this is the file of %s (R-7)", owner, s.Service)
	}
	if f.failure, err = protocol.classify(s, &f); err != nil {
		return f, err
	}
	if f.state.NeedsKey && f.policy.Idempotent {
		f.state.NeedsKey = false
		f.note("the policy declares every operation safe to repeat: no key is needed (R-6)")
	}
	if f.state.NeedsKey && f.state.Key == "" && f.policy.Keys == forbear.KeyGenerate {
		f.state.Key = "generated"
		f.note("forbear generates an idempotency key for this dependency (R-6)")
	}
	return f, nil
}

// note adds a line for the reader. Notes explain; the decision does not depend on
// them.
func (f *facts) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// check refuses numbers that mean nothing, such as a negative count, and those
// beyond maxCount. Remaining time may be negative: the deadline has passed. It runs
// before any sum is made of the numbers.
func (s *Situation) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"dns_failures", int64(s.DNSFailures)},
		{"elapsed_ms", s.ElapsedMS},
		{"attempts_made", int64(s.AttemptsMade)},
	} {
		if n.value < 0 || n.value > maxCount {
			return fmt.Errorf("%s %d is out of range", n.name, n.value)
		}
	}
	if r := s.RemainingMS; r != nil && (*r > maxCount || *r < -maxCount) {
		return fmt.Errorf("remaining_ms %d is out of range", *r)
	}
	if err := paired("headers", s.Headers); err != nil {
		return err
	}
	if err := paired("trailers", s.Trailers); err != nil {
		return err
	}
	if b := s.Budget; b != nil && (b.Initial < 0 || b.Initial > maxCount || b.Retries < 0 || b.Retries > maxCount) {
		return errors.New("budget is out of range")
	}
	return nil
}

// paired refuses what no header can be: a reader of JSON who takes the list for a pair
// would lose it, and with it the wait that the server asks for.
func paired(what string, headers [][]string) error {
	for _, h := range headers {
		if len(h) != 2 || h[0] == "" || strings.ContainsFunc(h[0], func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
		}) {
			return fmt.Errorf("%s has %q: want a name and a value", what, h)
		}
	}
	return nil
}

// policy returns the profile's policy, or Base, under the situation's own fields.
// A gRPC situation without a kind is of kind grpc; one with a policy file has the
// file's kind. The kind is set before the overlay, because kinds have different
// limits and the fields are validated against them.
func (s *Situation) policy() (forbear.Policy, error) {
	p, err := forbear.Profile(s.Profile)
	if err != nil {
		return p, err
	}
	if s.Base != nil {
		p = *s.Base
	}
	switch {
	case s.Kind != "":
		if err = p.Kind.UnmarshalText([]byte(s.Kind)); err != nil {
			return p, err
		}
	case s.Protocol == "grpc" && s.Base == nil:
		p.Kind = forbear.GRPC
	}
	if len(s.Policy) > 0 {
		return overlay(s.Policy, p)
	}
	return p, nil
}

// state is what the call has used, in the terms of the decision. An attempts_made of
// 0 counts as 1: the failure in question is that attempt. Without remaining_ms the
// deadline stays zero, which means none.
func (s *Situation) state(now time.Time) forbear.State {
	st := forbear.State{
		Attempt:      max(s.AttemptsMade, 1),
		Start:        now.Add(-time.Duration(s.ElapsedMS) * time.Millisecond),
		DNSFailures:  s.DNSFailures,
		Key:          s.IdempotencyKey,
		Unreplayable: !s.Replayable,
		Refreshable:  s.TokenRefresh,

		Unhealthy:      !s.Healthy,
		ExhaustedBelow: s.ExhaustedBelow,
	}
	if s.RemainingMS != nil {
		st.Deadline = now.Add(time.Duration(*s.RemainingMS) * time.Millisecond)
	}
	return st
}

// breaker returns where the circuit breaker stands.
func (s *Situation) breaker() (breaker.State, error) {
	switch s.Breaker {
	case "", "closed":
		return breaker.Closed, nil
	case "open":
		return breaker.Open, nil
	case "half-open":
		return breaker.HalfOpen, nil
	}
	return 0, fmt.Errorf("unknown breaker state %q: want closed, open or half-open", s.Breaker)
}
