package forbear_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/waitform"
	"github.com/forbear-go/forbear/reason"
)

// Each way in which a policy may leave the standard, and what the user reads.
func TestViolations(t *testing.T) {
	const s = time.Second
	backoff := func(b forbear.Backoff) forbear.Policy { return forbear.Policy{Backoff: b} }
	withBudget := func(b budget.Policy) forbear.Policy { return forbear.Policy{Budget: b} }
	classes := func(label string, c forbear.Class) forbear.Policy {
		return forbear.Policy{Classify: map[string]forbear.Class{label: c}}
	}
	for _, tt := range []struct {
		policy forbear.Policy
		want   string
	}{
		{forbear.Policy{Kind: 9}, "kind 9 is unknown"},
		{forbear.Policy{MaxRetries: 6}, "max_retries 6 is outside 1-5 (R-2)"},
		{forbear.Policy{MaxRetries: -1}, "max_retries -1 is negative"},
		{forbear.Policy{Kind: forbear.Event, MaxRetries: 11}, "max_retries 11 is outside 1-10 (R-2)"},
		{forbear.Policy{Kind: forbear.Webhook, MaxAttempts: 2}, "max_attempts 2 is outside 3-8 (R-2)"},
		{forbear.Policy{Kind: forbear.Webhook, MaxRetries: 3}, "max_retries does not apply to kind webhook: set max_attempts instead"},
		{forbear.Policy{MaxAttempts: 3}, "max_attempts does not apply to kind sync: set max_retries instead"},
		{forbear.Policy{MaxRetries: 2, Disabled: true}, "max_retries 2 contradicts disabled: set one of the two"},
		{forbear.Policy{Total: -s}, "total -1s is negative"},
		{forbear.Policy{PerAttempt: -s}, "per_attempt -1s is negative"},
		{forbear.Policy{PerAttempt: 5}, "per_attempt 5ns is shorter than any call: is the unit missing, as in 5*time.Second?"},
		{forbear.Policy{Classify: map[string]forbear.Class{"http_4004": forbear.ClassTransient}}, "classify.http_4004 names no HTTP status: want http_404, or http_4xx for a group"},
		{forbear.Policy{Connect: -s}, "connect -1s is negative"},
		{forbear.Policy{MinAttempt: -s}, "min_attempt -1s is negative"},
		{forbear.Policy{Total: 31 * s}, "total 31s is over 30s for kind sync (R-3)"},
		{forbear.Policy{Kind: forbear.Event, Total: 25 * time.Hour}, "total 25h0m0s is over 24h0m0s for kind event (R-3)"},
		{forbear.Policy{Total: s, MinAttempt: s}, "min_attempt 1s leaves no room in a total of 1s: lower it, or raise total"},
		{backoff(forbear.Backoff{Base: -s}), "backoff.base -1s is negative"},
		{backoff(forbear.Backoff{Cap: -s}), "backoff.cap -1s is negative"},
		{backoff(forbear.Backoff{Base: 3 * s, Cap: 2 * s}), "backoff.base 3s is over the cap of 2s (R-1)"},
		{backoff(forbear.Backoff{Jitter: "equal"}), `backoff.jitter "equal" is unknown: want full or decorrelated (R-1)`},
		{
			forbear.Policy{Kind: forbear.Webhook, Backoff: forbear.Backoff{Jitter: forbear.JitterDecorrelated, Schedule: []time.Duration{0, 1, 2, 3, 4}}},
			"backoff.jitter decorrelated cannot be combined with a schedule: drop one of the two",
		},
		{backoff(forbear.Backoff{Schedule: []time.Duration{0, s}}), "backoff.schedule has 2 steps for 4 attempts: add steps, or lower the count (R-3)"},
		{backoff(forbear.Backoff{Schedule: []time.Duration{0, 2 * s, s, 3 * s}}), "backoff.schedule does not increase at step 3 (1s): each step must be longer than the one before (R-3)"},
		{backoff(forbear.Backoff{Cap: 31 * s}), "backoff.cap 31s is longer than the budget window of 30s, so retries would outlive their window: lower it, or raise budget.window (R-7)"},
		{forbear.Policy{Backoff: forbear.Backoff{Cap: 61 * s}, Budget: budget.Policy{Window: 2 * time.Minute}}, "backoff.cap 1m1s is over 1m0s (R-1)"},
		{forbear.Policy{Backoff: forbear.Backoff{Base: 61 * s}, Budget: budget.Policy{Window: 2 * time.Minute}}, "backoff.base 1m1s is over 1m0s (R-1)"},
		{withBudget(budget.Policy{Ratio: 0.25}), "budget.ratio 25% is over 20% (R-7)"},
		{withBudget(budget.Policy{Ratio: 1.5}), "budget.ratio 1.5 is not a fraction: want 0 to 1, such as 0.2"},
		{withBudget(budget.Policy{Ratio: -0.1}), "budget.ratio -0.1 is not a fraction: want 0 to 1, such as 0.2"},
		{withBudget(budget.Policy{Ratio: 0.1, MaxMultiplier: 1.1}), "budget.max_multiplier and budget.ratio say the same thing: set only one"},
		{withBudget(budget.Policy{MaxMultiplier: 1.1, Of: budget.OfTotal}), "budget.max_multiplier always counts initial requests: drop budget.of"},
		{withBudget(budget.Policy{MaxMultiplier: 0.9}), "budget.max_multiplier 0.9 is not in 1-10"},
		{withBudget(budget.Policy{MaxMultiplier: 2}), "budget.max_multiplier 2 is over 1.25, which is 20% of the total (R-7)"},
		{withBudget(budget.Policy{MinRetries: -1}), "budget.min_retries -1 is negative"},
		{withBudget(budget.Policy{MinRetries: 11}), "budget.min_retries 11 is over 10 (R-7)"},
		{withBudget(budget.Policy{MinRetries: 1 << 30}), "budget.min_retries 1073741824 is over 10 (R-7)"},
		{withBudget(budget.Policy{Ratio: math.NaN()}), "budget.ratio NaN is not a fraction: want 0 to 1, such as 0.2"},
		{withBudget(budget.Policy{Ratio: math.Inf(1)}), "budget.ratio +Inf is not a fraction: want 0 to 1, such as 0.2"},
		{withBudget(budget.Policy{Ratio: math.Inf(-1)}), "budget.ratio -Inf is not a fraction: want 0 to 1, such as 0.2"},
		{withBudget(budget.Policy{MaxMultiplier: math.NaN()}), "budget.max_multiplier NaN is not in 1-10"},
		{withBudget(budget.Policy{MaxMultiplier: math.Inf(1)}), "budget.max_multiplier +Inf is not in 1-10"},
		{forbear.Policy{Breaker: breaker.Policy{FailureRate: math.NaN()}}, "breaker.failure_rate NaN is not a fraction: want 0 to 1, such as 0.2"},
		{forbear.Policy{Breaker: breaker.Policy{SlowRate: math.NaN()}}, "breaker.slow_rate NaN is not a fraction: want 0 to 1, such as 0.2"},
		{forbear.Policy{Breaker: breaker.Policy{SlowRate: math.Inf(1)}}, "breaker.slow_rate +Inf is not a fraction: want 0 to 1, such as 0.2"},
		{forbear.Policy{Health: health.Policy{MinSuccess: math.NaN()}}, "health.min_success NaN is not a fraction: want 0 to 1, such as 0.2"},
		{forbear.Policy{Health: health.Policy{MinSuccess: math.Inf(-1)}}, "health.min_success -Inf is not a fraction: want 0 to 1, such as 0.2"},
		{forbear.Policy{Strict: true, Budget: budget.Policy{MinRetries: 2}}, "budget.min_retries 2 contradicts strict: set one of the two (R-7)"},
		{forbear.Policy{Strict: true, Budget: budget.Policy{RoundUp: true}}, "budget.round_up contradicts strict: set one of the two (R-7)"},
		{withBudget(budget.Policy{Window: 2 * time.Hour}), "budget.window 2h0m0s is not in 0-1h, such as 30s"},
		{withBudget(budget.Policy{Window: 10 * s}), "budget.window 10s is shorter than the backoff cap of 30s, so retries would outlive their window: raise it, or lower backoff.cap (R-7)"},
		{classes("tls_certificate", forbear.ClassTransient), "classify.tls_certificate cannot be transient: certificate errors and cancellations are never reclassified (R-9)"},
		{classes("http_404", forbear.ClassSuccess), "classify.http_404 cannot be success: certificate errors and cancellations are never reclassified (R-9)"},
		{classes("http_404", 99), "classify.http_404 has an unknown class"},
		{waits("Retry-After", waitform.Milliseconds), "wait_headers.Retry-After is always read first: leave it out"},
		{waits("retry-after-ms", waitform.Auto), "wait_headers.retry-after-ms is always read first: leave it out"},
		{waits("X-Wait", "minutes"), `wait_headers.X-Wait has the unknown form "minutes": want one of [auto seconds milliseconds http-date unix rfc3339 duration]`},
		{forbear.Policy{Keys: "maybe"}, `idempotency "maybe" is unknown: want reuse, generate or refuse (R-6)`},
		{waits("X-Wait", waitform.Auto, "x-wait"), "wait_headers.x-wait appears twice, in different case: header names ignore case"},
		{waits("X Wait", waitform.Auto), `wait_headers "X Wait" is not the name of a header: want letters, digits, '-', '_' and '.', at most 64`},
		{waits(strings.Repeat("x", 65), waitform.Auto), `wait_headers "` + strings.Repeat("x", 64) + `" is not the name of a header: want letters, digits, '-', '_' and '.', at most 64`},
		{waits("X-0", waitform.Auto, strings.Fields("X-1 X-2 X-3 X-4 X-5 X-6 X-7 X-8 X-9 X-10 X-11 X-12 X-13 X-14 X-15 X-16")...), "wait_headers names 17 headers: want at most 16"},
	} {
		err := tt.policy.Validate()
		if err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.policy, err, tt.want)
		}
		_, err = forbear.New("payments", tt.policy, forbear.WithCallerDeadLetter())
		if want := `policy "payments": ` + tt.want; err == nil || err.Error() != want {
			t.Errorf("New\n got %v\nwant %s", err, want)
		} else if !errors.Is(err, forbear.ErrPolicy) {
			t.Errorf("%v is not ErrPolicy", err)
		}
	}
}

// waits returns a policy that names headers, all of one form.
func waits(name, form string, more ...string) forbear.Policy {
	named := map[string]string{name: form}
	for _, n := range more {
		named[n] = form
	}
	return forbear.Policy{WaitHeaders: named}
}

func TestAllViolationsAtOnce(t *testing.T) {
	_, err := forbear.New("payments", forbear.Policy{MaxRetries: 9, Total: time.Hour, Budget: budget.Policy{Ratio: 0.5}})
	want := strings.Join([]string{
		`policy "payments": max_retries 9 is outside 1-5 (R-2)`,
		`policy "payments": total 1h0m0s is over 30s for kind sync (R-3)`,
		`policy "payments": budget.ratio 50% is over 20% (R-7)`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if v, ok := errors.AsType[*forbear.Violation](err); !ok || v.Rule != "R-2" || v.Field != "max_retries" {
		t.Errorf("got %+v", v)
	}
}

func TestGoodPolicies(t *testing.T) {
	for name, p := range map[string]forbear.Policy{
		"zero":             {},
		"strict":           {Strict: true},
		"disabled":         {Disabled: true},
		"every kind":       {Kind: forbear.Event, MaxRetries: 10},
		"longest cap":      {Backoff: forbear.Backoff{Cap: time.Minute}, Budget: budget.Policy{Window: time.Minute}},
		"fifth multiplier": {Budget: budget.Policy{MaxMultiplier: 1.25}},
		"of total":         {Budget: budget.Policy{Ratio: 0.2, Of: budget.OfTotal}},
		"highest floor":    {Budget: budget.Policy{MinRetries: budget.MaxMinRetries}},
		"no idle bound":    {BodyIdle: -1},
		"user's class":     {Classify: map[string]forbear.Class{"http_404": forbear.ClassTransient}},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWaivers(t *testing.T) {
	many := forbear.Policy{MaxRetries: 9}
	lax := forbear.Policy{Classify: map[string]forbear.Class{errtype.Certificate: forbear.ClassTransient}}
	waiver := func(rule, dependency, reason string, expires time.Time) forbear.Waiver {
		return forbear.Waiver{Rule: rule, Dependency: dependency, Reason: reason, Expires: expires}
	}
	var never time.Time
	for _, tt := range []struct {
		name   string
		policy forbear.Policy
		waiver forbear.Waiver
		ok     bool
	}{
		{"covers", many, waiver("R-2", "payments", "IAB-17", never), true},
		{"not expired", many, waiver("R-2", "payments", "IAB-17", time.Now().Add(time.Hour)), true},
		{"expired", many, waiver("R-2", "payments", "IAB-17", time.Now().Add(-time.Hour)), false},
		{"another rule", many, waiver("R-3", "payments", "IAB-17", never), false},
		{"another dependency", many, waiver("R-2", "search", "IAB-17", never), false},
		{"no reason", many, waiver("R-2", "payments", "", never), false},
		{"R-9 never", lax, waiver("R-9", "payments", "please", never), false},
		{"nonsense never", forbear.Policy{MaxRetries: -1}, waiver("", "payments", "please", never), false},
	} {
		_, err := forbear.New("payments", tt.policy, forbear.WithWaiver(tt.waiver))
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want accepted = %v", tt.name, err, tt.ok)
		}
	}
	two := forbear.Policy{MaxRetries: 9, Total: time.Hour}
	_, err := forbear.New("payments", two, forbear.WithWaiver(waiver("R-2", "payments", "IAB-17", never)))
	if want := `policy "payments": total 1h0m0s is over 30s for kind sync (R-3)`; err == nil || err.Error() != want {
		t.Errorf("one of two waived: got %v, want %s", err, want)
	}
}

func TestStrict(t *testing.T) {
	if got := (forbear.Policy{}).WithDefaults().Budget.Allowed(0); got != 3 {
		t.Errorf("a quiet client has %d retries, want 3", got)
	}
	if got := (forbear.Policy{Strict: true}).WithDefaults().Budget.Allowed(4); got != 0 {
		t.Errorf("a strict quiet client has %d retries, want 0", got)
	}
	if got := (forbear.Policy{Strict: true, Kind: forbear.Event}).WithDefaults().Budget.Allowed(0); got != 1 {
		t.Errorf("a strict queue has %d retries, want 1", got)
	}
}

func TestProfiles(t *testing.T) {
	for _, name := range []string{"", "standard", "cautious", "lattice"} {
		p, err := forbear.Profile(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := forbear.Profile("reckless"); err == nil || err.Error() != `unknown profile "reckless": want standard, cautious or lattice` {
		t.Errorf("got %v", err)
	}
	lattice, _ := forbear.Profile("lattice")
	for label, want := range map[string]bool{"http_404": true, "http_409": true, "http_501": true, "http_400": false, "grpc_NOT_FOUND": true} {
		f := forbear.Failure{Class: forbear.ClassTerminal, Type: label}
		if d := decide(lattice, forbear.State{}, f); d.Retry != want {
			t.Errorf("lattice, %s: got %+v, want retry = %v", label, d, want)
		}
		if d := decide(forbear.Policy{}, forbear.State{}, f); d.Retry {
			t.Errorf("standard, %s: got %+v", label, d)
		}
	}
	f := forbear.Failure{Class: forbear.ClassCertificate, Type: "http_404"}
	if d := decide(lattice, forbear.State{}, f); d.Retry {
		t.Errorf("lattice, certificate: got %+v", d)
	}
}

func TestPolicyIsPlainData(t *testing.T) {
	p := forbear.Policy{Kind: forbear.Webhook, MaxAttempts: 4, Classify: map[string]forbear.Class{"http_404": forbear.ClassTransient}}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q forbear.Policy
	if err := json.Unmarshal(data, &q); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, q) {
		t.Errorf("got %+v, want %+v", q, p)
	}
}

func TestNames(t *testing.T) {
	for k := forbear.Sync; k <= forbear.Batch; k++ {
		var got forbear.Kind
		if err := got.UnmarshalText([]byte(k.String())); err != nil || got != k {
			t.Errorf("%v: got %v, %v", k, got, err)
		}
	}
	if err := new(forbear.Kind).UnmarshalText([]byte("cron")); err == nil {
		t.Error("cron is no kind")
	}
	for c := forbear.ClassUnknown; c <= forbear.ClassCanceled; c++ {
		var got forbear.Class
		text, _ := c.MarshalText()
		if err := got.UnmarshalText(text); err != nil || got != c {
			t.Errorf("%v: got %v, %v", c, got, err)
		}
	}
	var c forbear.Class
	if err := c.UnmarshalText([]byte("maybe")); err == nil {
		t.Error("maybe is no class")
	}
	seen := map[string]bool{}
	for r := reason.Retryable; r <= reason.Budget; r++ {
		if name := r.String(); name == "" || name == "invalid" || seen[name] {
			t.Errorf("reason %d has the name %q", r, name)
		} else {
			seen[name] = true
		}
	}
	if got := forbear.Reason(200).String(); got != "invalid" {
		t.Errorf("got %q", got)
	}
}
