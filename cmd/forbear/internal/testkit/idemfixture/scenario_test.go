package idemfixture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// document is vectors/idempotency.json.
type document struct {
	About  json.RawMessage `json:"about"`
	HTTP   []scenario      `json:"http"`
	Events []eventScenario `json:"events"`
}

type scenario struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Rules   []string        `json:"rules"`
	Level   string          `json:"level"`
	Stores  stores          `json:"stores"`
	Steps   []step          `json:"steps"`
	Expect  []expectation   `json:"expect"`
	Effects json.RawMessage `json:"effects"`
	Note    string          `json:"note"`
	Basis   string          `json:"basis"`
}

// stores is "all" or a list.
type stores []string

func (s *stores) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		if *s = []string{one}; one == "all" {
			*s = []string{"memory", "sqlite", "postgres", "redis"}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

// check fails the test for stores that nobody knows.
func (s stores) check(t *testing.T, scenario string) {
	t.Helper()
	for _, name := range s {
		if !slices.Contains([]string{"memory", "sqlite", "postgres", "redis"}, name) {
			t.Errorf("%s: store %q is not understood", scenario, name)
		}
	}
}

type request struct {
	ID               string                     `json:"id"`
	Method           string                     `json:"method"`
	Path             string                     `json:"path"`
	Instance         string                     `json:"instance"`
	Principal        *string                    `json:"principal"`
	Body             *string                    `json:"body"`
	BodyBytes        int                        `json:"body_bytes"`
	Headers          map[string]string          `json:"headers"`
	RawHeader        json.RawMessage            `json:"raw_header"`
	ExtraHeaderLines [][2]string                `json:"extra_header_lines"`
	ClientTimeoutMS  int                        `json:"client_timeout_ms"`
	MaxMS            int                        `json:"max_ms"`
	Asynchronous     bool                       `json:"asynchronous"`
	Config           map[string]json.RawMessage `json:"config"`
}

type step struct {
	Do string `json:"do"`
	request
	N                int             `json:"n"`
	Concurrency      int             `json:"concurrency"`
	UniqueKeys       bool            `json:"unique_keys"`
	Instances        []string        `json:"instances"`
	Request          *request        `json:"request"`
	Event            string          `json:"event"`
	MS               int             `json:"ms"`
	By               duration        `json:"by"`
	Action           string          `json:"action"`
	Retention        duration        `json:"retention"`
	ExpectError      bool            `json:"expect_error"`
	Policy           json.RawMessage `json:"policy"`
	Proxy            json.RawMessage `json:"proxy"`
	AttemptTimeoutMS int             `json:"attempt_timeout_ms"`
}

// stepFields are the fields of each step, beside do.
var stepFields = map[string][]string{
	"request":     {"id", "method", "path", "instance", "principal", "body", "body_bytes", "headers", "raw_header", "extra_header_lines", "client_timeout_ms", "max_ms", "asynchronous", "config"},
	"parallel":    {"n", "concurrency", "unique_keys", "instances", "request"},
	"wait":        {"event"},
	"sleep":       {"ms"},
	"kill":        {"instance"},
	"start":       {"instance"},
	"resume":      {"id"},
	"advance":     {"by"},
	"clock_skew":  {"instance", "by"},
	"store":       {"action"},
	"sweep":       {},
	"configure":   {"retention", "expect_error"},
	"client_call": {"request", "policy", "proxy", "attempt_timeout_ms"},
}

// UnmarshalJSON refuses steps that nobody knows, and fields that are another
// step's: they would be passed over.
func (s *step) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	var do string
	_ = json.Unmarshal(fields["do"], &do)
	known, ok := stepFields[do]
	if !ok {
		return fmt.Errorf("step %q is not understood", do)
	}
	for name := range fields {
		if name != "do" && !slices.Contains(known, name) {
			return fmt.Errorf("field %q of step %s is not understood", name, do)
		}
	}
	type plain step
	return vectors.Decode(b, (*plain)(s))
}

type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	text, sign := string(b), 1
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text, sign = rest, -1
	}
	days := 0
	if i := strings.IndexByte(text, 'd'); i > 0 {
		if _, err := fmt.Sscanf(text[:i], "%d", &days); err != nil {
			return err
		}
		if text = strings.TrimSpace(text[i+1:]); text == "" {
			text = "0s"
		}
	}
	v, err := time.ParseDuration(text)
	*d = duration(time.Duration(sign) * (v + time.Duration(days)*24*time.Hour))
	return err
}

// anyOf is one value, or a list of those allowed.
type anyOf []any

func (a *anyOf) UnmarshalJSON(b []byte) error {
	var list []any
	if json.Unmarshal(b, &list) == nil {
		*a = list
		return nil
	}
	var one any
	err := json.Unmarshal(b, &one)
	*a = anyOf{one}
	return err
}

// allows reports whether v, a number or a string or nil, is one of a.
func (a anyOf) allows(v any) bool {
	return slices.ContainsFunc(a, func(x any) bool { return fmt.Sprint(x) == fmt.Sprint(v) })
}

// names is one name, a list of names, or names with their values.
type names map[string]*string

func (n *names) UnmarshalJSON(b []byte) error {
	*n = names{}
	var one string
	var list []string
	switch {
	case json.Unmarshal(b, &one) == nil:
		(*n)[one] = nil
	case json.Unmarshal(b, &list) == nil:
		for _, x := range list {
			(*n)[x] = nil
		}
	default:
		return json.Unmarshal(b, (*map[string]*string)(n))
	}
	return nil
}

type expectation struct {
	ID               string           `json:"id"`
	Status           anyOf            `json:"status"`
	Replayed         *bool            `json:"replayed"`
	SameBodyAs       string           `json:"same_body_as"`
	NeverBodyOf      string           `json:"never_body_of"`
	NeverPartialOf   string           `json:"never_partial_of"`
	DiffersFrom      string           `json:"differs_from"`
	HeaderDiffers    names            `json:"header_differs"`
	HasHeaders       names            `json:"has_headers"`
	LacksHeaders     names            `json:"lacks_headers"`
	AnyHeader        names            `json:"any_header"`
	Body             *string          `json:"body"`
	BodyBytes        anyOf            `json:"body_bytes"`
	ContentType      string           `json:"content_type"`
	ProblemTypeNot   string           `json:"problem_type_not"`
	RetryAfter       *bool            `json:"retry_after"`
	RetryAfterOn     []int            `json:"retry_after_on"`
	Counts           map[string]anyOf `json:"counts"`
	All201SameBody   bool             `json:"all_201_same_body"`
	NotReplayed201   *int             `json:"not_replayed_201"`
	MaxMS            int              `json:"max_ms"`
	FirstByteBeforMS int              `json:"first_byte_before_ms"`
	MaxRSSMiB        int              `json:"max_rss_mib"`
}
