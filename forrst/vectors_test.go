package forrst_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/reason"
)

type vectorCase struct {
	ID           string `json:"id"`
	Title        string `json:"title"`
	Phase        []int  `json:"phase"`
	Basis        string `json:"basis"`
	Ambiguity    string `json:"ambiguity"`
	Note         string `json:"note"`
	AttemptsMade int    `json:"attempts_made"`
	Request      struct {
		HasKey     bool   `json:"has_idempotency_key"`
		Key        string `json:"key"`
		ID         string `json:"id"`
		DeadlineMS int64  `json:"deadline_ms"`
		Idempotent bool   `json:"declared_idempotent"`
	} `json:"request"`
	Context struct {
		Kind              string `json:"kind"`
		RemainingMS       *int64 `json:"remaining_ms"`
		PolicyMaxAttempts int    `json:"policy_max_attempts"`
		CapMS             int64  `json:"cap_ms"`
	} `json:"context"`
	HTTP *struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
	} `json:"http"`
	Message json.RawMessage `json:"message"`
	RawBody *string         `json:"raw_body"`
	Expect  expectation     `json:"expect"`
}

type expectation struct {
	Outcome            string  `json:"outcome"`
	Retry              bool    `json:"retry"`
	Strategy           *string `json:"strategy"`
	WaitMinMS          *int64  `json:"wait_min_ms"`
	WaitMaxMS          *int64  `json:"wait_max_ms"`
	MaxAttempts        *int    `json:"max_attempts"`
	SameKey            *bool   `json:"same_key"`
	NewRequestID       *bool   `json:"new_request_id"`
	LongerDeadline     *bool   `json:"longer_deadline"`
	DeprecationWarning bool    `json:"deprecation_warning"`
	Source             string  `json:"source"`
	Reason             *string `json:"reason"`
}

// verdict is what forbear makes of a case, in the vectors' words.
type verdict struct {
	advice forrst.Advice
	d      forbear.Decision
	policy forbear.Policy
	state  forbear.State
}

var kinds = map[string]forbear.Kind{"sync": forbear.Sync, "async": forbear.Event}

func (c *vectorCase) judge(phase int, now time.Time) (v verdict, err error) {
	kind, ok := kinds[c.Context.Kind]
	if !ok {
		return v, fmt.Errorf("context.kind %q is not understood", c.Context.Kind)
	}
	v.policy = forbear.Policy{Kind: kind, MaxRetries: c.Context.PolicyMaxAttempts}
	v.policy.Backoff.Cap = time.Duration(c.Context.CapMS) * time.Millisecond
	x := forrst.Message{RequestID: c.Request.ID, Body: c.Message, Now: now}
	if c.RawBody != nil {
		x.Body = []byte(*c.RawBody)
	}
	if c.HTTP != nil {
		x.Status, x.Header = c.HTTP.Status, http.Header{}
		for k, value := range c.HTTP.Headers {
			x.Header.Set(k, value)
		}
	}
	v.state = forbear.State{Attempt: c.AttemptsMade, Start: now, NeedsKey: !c.Request.Idempotent}
	if c.Request.HasKey {
		v.state.Key = cmp.Or(c.Request.Key, "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2")
	}
	if ms := c.Context.RemainingMS; ms != nil {
		v.state.Deadline = now.Add(time.Duration(*ms) * time.Millisecond)
	}
	v.advice = forrst.Phase(phase).Advise(x)
	v.d = forbear.Decide(&v.policy, v.state, v.advice.Failure, now, func() float64 { return 0.5 })
	return v, nil
}

func (v *verdict) outcome() string {
	switch v.advice.Outcome {
	case forrst.Success:
		return "success"
	case forrst.Queued:
		return "queued"
	case forrst.Malformed, forrst.IDMismatch:
		return "protocol_error"
	}
	if v.d.Retry {
		return "retry"
	}
	return "fail"
}

// reason names the refusal as the vectors do.
func (v *verdict) reason() string {
	switch v.advice.Outcome {
	case forrst.Malformed:
		return "malformed"
	case forrst.IDMismatch:
		return "id_mismatch"
	}
	switch v.d.Reason {
	case reason.Exhausted:
		return "max_attempts"
	case reason.HintTooLong:
		return "after_exceeds_budget"
	case reason.ServerStop:
		return "not_allowed"
	case reason.Terminal, reason.Unauthorized:
		return "not_retryable"
	case reason.NoKey:
		return "not_idempotent"
	}
	return v.d.Reason.String()
}

// source is the advice's own, except where forbear's policy said the last word.
func (v *verdict) source() string {
	switch v.d.Reason {
	case reason.NoKey, reason.Deadline:
		return "policy"
	case reason.Exhausted:
		if n := v.advice.Failure.Hint.MaxRetries; n == 0 || n >= v.policy.Retries() {
			return "policy"
		}
	}
	return string(v.advice.Source)
}

func TestVectorsForrst(t *testing.T) {
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "forrst.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		for _, phase := range c.Phase {
			t.Run(fmt.Sprintf("%s/phase%d", c.ID, phase), func(t *testing.T) {
				if phase < 1 || phase > 3 {
					t.Fatalf("phase %d is not understood", phase)
				}
				v, err := c.judge(phase, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
				if err != nil {
					t.Fatal(err)
				}
				c.check(t, &v)
			})
		}
	}
}

func (c *vectorCase) check(t *testing.T, v *verdict) {
	t.Helper()
	want := c.Expect
	differ := func(what string, got, want any) { t.Errorf("%s: got %v, want %v (%s)", what, got, want, c.Title) }
	// A call that the server has queued is a success; a file may say either.
	if got := v.outcome(); got != want.Outcome && !(got == "queued" && want.Outcome == "success") {
		differ("outcome", got, want.Outcome)
	}
	if v.d.Retry != want.Retry {
		differ("retry", v.d.Retry, want.Retry)
	}
	if got := v.source(); got != want.Source {
		differ("source", got, want.Source)
	}
	if v.advice.Deprecated != want.DeprecationWarning {
		differ("deprecation_warning", v.advice.Deprecated, want.DeprecationWarning)
	}
	if want.Reason != nil && !v.d.Retry && v.outcome() != "success" {
		if got := v.reason(); got != *want.Reason {
			differ("reason", got, *want.Reason)
		}
	}
	h := v.advice.Failure.Hint
	if longer := v.d.Retry && h.LongerDeadline; want.LongerDeadline != nil && longer != *want.LongerDeadline {
		differ("longer_deadline", longer, *want.LongerDeadline)
	}
	if !v.d.Retry {
		return
	}
	if want.Strategy != nil && string(v.advice.Strategy) != *want.Strategy {
		differ("strategy", v.advice.Strategy, *want.Strategy)
	}
	if want.WaitMinMS != nil && v.d.Floor.Milliseconds() < *want.WaitMinMS {
		differ("floor in ms", v.d.Floor.Milliseconds(), *want.WaitMinMS)
	}
	if want.WaitMaxMS != nil && v.d.Ceiling > time.Duration(*want.WaitMaxMS)*time.Millisecond {
		differ("ceiling in ms", v.d.Ceiling.Milliseconds(), *want.WaitMaxMS)
	}
	if want.MaxAttempts != nil && h.MaxRetries != *want.MaxAttempts {
		differ("max_attempts", h.MaxRetries, *want.MaxAttempts)
	}
	if want.SameKey != nil && (h.SameKey && v.state.Key != "") != *want.SameKey {
		differ("same_key", h.SameKey, *want.SameKey)
	}
}

// TestVectorWords holds the runner to the vocabulary: a file that says what the
// runner does not know must not pass.
func TestVectorWords(t *testing.T) {
	known := map[string][]string{
		"outcome": {"retry", "fail", "success", "queued", "protocol_error"},
		"source":  {"extension", "extension+default", "default", "retryable_flag", "policy", "none", "http"},
	}
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "forrst.json", &file)
	for _, c := range file.Cases {
		if !slices.Contains(known["outcome"], c.Expect.Outcome) || !slices.Contains(known["source"], c.Expect.Source) {
			t.Errorf("%s: outcome %q or source %q is not understood", c.ID, c.Expect.Outcome, c.Expect.Source)
		}
		if len(c.Phase) == 0 {
			t.Errorf("%s: no phase", c.ID)
		}
	}
}
