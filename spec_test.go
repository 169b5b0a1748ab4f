package forbear_test

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/reason"
)

// The worked numbers of the standard and its companions, by name.

var epoch = time.Unix(1_000_000, 0)

func half() float64 { return 0.5 }

func decide(p forbear.Policy, s forbear.State, f forbear.Failure) forbear.Decision {
	return forbear.Decide(&p, s, f, epoch, half)
}

// The lesson, "Under the hood": base 500 ms, ceilings 500 to 16,000 ms, and
// 32,000 ms capped at 30 s.
func TestLessonCeilings500To16000AndCap30s(t *testing.T) {
	for n, want := range []time.Duration{500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000} {
		if got := duration.Ceiling(500*time.Millisecond, 30*time.Second, n); got != want*time.Millisecond {
			t.Errorf("attempt %d: got %v, want %v", n, got, want*time.Millisecond)
		}
	}
}

// The lesson, worked example: the draws of its table give its waits.
func TestLessonIllustrativeDraws(t *testing.T) {
	p := forbear.Policy{MaxRetries: 5, Backoff: forbear.Backoff{Base: 500 * time.Millisecond}}
	for i, row := range []struct{ draw, wantMS float64 }{{0.74, 370}, {0.22, 220}, {0.88, 1760}, {0.41, 1640}, {0.06, 480}} {
		d := forbear.Decide(&p, forbear.State{Attempt: i + 1}, transient, epoch, func() float64 { return row.draw })
		if got := float64(d.Wait) / 1e6; math.Abs(got-row.wantMS) > 0.001 {
			t.Errorf("retry %d: got %v ms, want %v", i+1, got, row.wantMS)
		}
	}
}

// R-1 starts with exponent 0, the lesson's "By the numbers" with exponent 1:
// base 100 ms, cap 2 s give means of 50/100/200 ms and of 100/200/400 ms.
func TestByTheNumbers100_200_400Against50_100_200(t *testing.T) {
	const base, limit = 100 * time.Millisecond, 2 * time.Second
	p := forbear.Policy{Backoff: forbear.Backoff{Base: base, Cap: limit}}
	var sum time.Duration
	for i, want := range []time.Duration{50, 100, 200} {
		if got := decide(p, forbear.State{Attempt: i + 1}, transient).Wait; got != want*time.Millisecond {
			t.Errorf("R-1, mean before retry %d: got %v, want %v", i+1, got, want*time.Millisecond)
		}
		lesson := duration.Ceiling(base, limit, i+1) / 2
		if lesson != 2*want*time.Millisecond {
			t.Errorf("lesson, mean before retry %d: got %v, want %v", i+1, lesson, 2*want*time.Millisecond)
		}
		sum += lesson
	}
	if sum != 700*time.Millisecond {
		t.Errorf("the lesson's expected elapsed time: got %v, want 700ms", sum)
	}
	// The cap is reached from n = 5 on: log2(20) is 4.3.
	if a, b := duration.Ceiling(base, limit, 4), duration.Ceiling(base, limit, 5); a != 1600*time.Millisecond || b != limit {
		t.Errorf("around the cap: got %v and %v", a, b)
	}
}

// base defaults to 1 s and cap to 30 s.
func TestR1Defaults(t *testing.T) {
	p := forbear.Policy{MaxRetries: 5, Kind: forbear.Event}
	for i, want := range []time.Duration{1, 2, 4, 8, 16} {
		if d := decide(p, forbear.State{Attempt: i + 1}, transient); d.Ceiling != want*time.Second || d.Floor != 0 {
			t.Errorf("retry %d: got [%v, %v], want [0, %v]", i+1, d.Floor, d.Ceiling, want*time.Second)
		}
	}
	if got := duration.Ceiling(time.Second, 30*time.Second, 5); got != 30*time.Second {
		t.Errorf("2^5: got %v, want the cap", got)
	}
}

// The lesson's exercise: base 500 ms, cap 20 s, 4 attempts, a 10 % budget,
// 500/503/429 retried and 400/402 not, one key for all attempts.
func TestLessonPaymentExercise(t *testing.T) {
	p := forbear.Policy{
		MaxRetries: 3,
		Backoff:    forbear.Backoff{Base: 500 * time.Millisecond, Cap: 20 * time.Second},
		Budget:     budget.Policy{Ratio: 0.10},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	const key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"
	post := forbear.State{NeedsKey: true, Key: key}
	for label, tt := range map[string]struct {
		class forbear.Class
		retry bool
	}{
		"http_500": {forbear.ClassTransient, true},
		"http_503": {forbear.ClassTransient, true},
		"http_429": {forbear.ClassThrottled, true},
		"http_400": {forbear.ClassTerminal, false},
		"http_402": {forbear.ClassTerminal, false},
	} {
		if d := decide(p, post, forbear.Failure{Class: tt.class, Type: label}); d.Retry != tt.retry {
			t.Errorf("%s: got %+v, want retry = %v", label, d, tt.retry)
		}
	}
	s := post
	for attempt := 1; attempt <= 4; attempt++ {
		d := decide(p, s, transient)
		if d.Retry != (attempt < 4) {
			t.Errorf("after attempt %d: got %+v", attempt, d)
		}
		if s = s.After(d); s.Key != key {
			t.Errorf("after attempt %d the key is %q", attempt, s.Key)
		}
	}
	if got := p.WithDefaults().Budget.Allowed(1000); got != 100 {
		t.Errorf("budget: %d retries for 1,000 calls, want 100", got)
	}
	if d := decide(p, forbear.State{NeedsKey: true}, transient); d.Retry || d.Reason != reason.NoKey {
		t.Errorf("without a key: got %+v", d)
	}
}

// The lesson's question 3: Retry-After 45 against a computed 3 s.
func TestRetryAfter45OverComputed3s(t *testing.T) {
	p := forbear.Policy{Kind: forbear.Event, Backoff: forbear.Backoff{Base: 6 * time.Second}}
	if d := decide(p, forbear.State{}, transient); d.Wait != 3*time.Second {
		t.Fatalf("computed wait: got %v, want 3s", d.Wait)
	}
	f := forbear.Failure{Class: forbear.ClassThrottled, Hint: forbear.Hint{Floor: 45 * time.Second}}
	if d := decide(p, forbear.State{}, f); !d.Retry || d.Wait != 45*time.Second {
		t.Errorf("got %+v, want a wait of 45s", d)
	}
	// In a synchronous call of 30 s it fails at once.
	if d := decide(forbear.Policy{}, forbear.State{}, f); d.Retry || d.Reason != reason.HintTooLong || d.Reason.Rule() != "R-5" {
		t.Errorf("sync: got %+v, want after_exceeds_deadline", d)
	}
}

// the server's wait is never shortened to fit, and takes precedence only
// when it is greater.
func TestR5FloorIsNeverShortened(t *testing.T) {
	hint := func(floor time.Duration) forbear.Failure {
		return forbear.Failure{Class: forbear.ClassThrottled, Hint: forbear.Hint{Floor: floor}}
	}
	left := forbear.State{Deadline: epoch.Add(10 * time.Second)}
	for _, tt := range []struct {
		floor time.Duration
		wait  time.Duration // 0: stop
	}{
		{0, 500 * time.Millisecond},
		{200 * time.Millisecond, 500 * time.Millisecond},
		{600 * time.Millisecond, 600 * time.Millisecond},
		{9 * time.Second, 9 * time.Second},
		{9900 * time.Millisecond, 9900 * time.Millisecond}, // leaves MinAttempt
		{9901 * time.Millisecond, 0},
		{10 * time.Second, 0},
		{time.Duration(math.MaxInt64), 0},
	} {
		d := decide(forbear.Policy{}, left, hint(tt.floor))
		if d.Retry != (tt.wait > 0) || d.Wait != tt.wait {
			t.Errorf("floor %v: got %+v, want %v", tt.floor, d, tt.wait)
		}
	}
}

// The order of questions: where two neighbors object, the earlier one answers.
func TestDecisionOrder(t *testing.T) {
	type question struct {
		name   string
		reason forbear.Reason
		object func(s *forbear.State, f *forbear.Failure)
	}
	questions := []question{
		{"canceled", reason.Canceled, func(_ *forbear.State, f *forbear.Failure) { f.Class = forbear.ClassCanceled }},
		{"class", reason.Terminal, func(_ *forbear.State, f *forbear.Failure) {
			if f.Class != forbear.ClassCanceled {
				f.Class = forbear.ClassTerminal
			}
		}},
		{"server said stop", reason.ServerStop, func(_ *forbear.State, f *forbear.Failure) { f.Hint.Stop = true }},
		{"exhausted below", reason.ExhaustedBelow, func(s *forbear.State, _ *forbear.Failure) { s.ExhaustedBelow = true }},
		{"key", reason.NoKey, func(s *forbear.State, _ *forbear.Failure) { s.NeedsKey = true }},
		{"replay", reason.NotReplayable, func(s *forbear.State, _ *forbear.Failure) { s.Unreplayable = true }},
		{"breaker", reason.BreakerOpen, func(s *forbear.State, _ *forbear.Failure) { s.Breaker = breaker.Open }},
		{"health", reason.Unhealthy, func(s *forbear.State, _ *forbear.Failure) { s.Unhealthy = true }},
		{"inner layer", reason.Inner, func(s *forbear.State, _ *forbear.Failure) { s.Inner = true }},
		{"count", reason.Exhausted, func(s *forbear.State, _ *forbear.Failure) { s.Attempt = 4 }},
		{"deadline", reason.Deadline, func(s *forbear.State, _ *forbear.Failure) { s.Start = epoch.Add(-time.Hour) }},
	}
	decideWith := func(objecting ...question) forbear.Reason {
		// The budget always objects, and must never be asked before the others.
		p, s, f := forbear.Policy{}, forbear.State{Start: epoch, BudgetSpent: true}, transient
		for _, q := range objecting {
			q.object(&s, &f)
		}
		return forbear.Decide(&p, s, f, epoch, half).Reason
	}
	if got := decideWith(); got != reason.Budget {
		t.Errorf("budget alone: got %v", got)
	}
	for i, q := range questions {
		if got := decideWith(q); got != q.reason {
			t.Errorf("%s: got %v, want %v", q.name, got, q.reason)
		}
		for _, later := range questions[i+1:] {
			if got := decideWith(later, q); got != q.reason {
				t.Errorf("%s and %s: got %v, want %v", q.name, later.name, got, q.reason)
			}
		}
	}
}

// table by table.
func TestR2R3Defaults(t *testing.T) {
	for kind, want := range map[forbear.Kind]struct {
		retries        int
		total, attempt time.Duration
	}{
		forbear.Sync:    {3, 30 * time.Second, 5 * time.Second},
		forbear.GRPC:    {3, 30 * time.Second, 5 * time.Second},
		forbear.Event:   {5, 24 * time.Hour, time.Minute},
		forbear.Webhook: {4, 24 * time.Hour, 10 * time.Second},
		forbear.Batch:   {3, 30 * time.Second, 5 * time.Second},
	} {
		p := forbear.Policy{Kind: kind}
		if got := p.Retries(); got != want.retries {
			t.Errorf("%v: %d retries, want %d", kind, got, want.retries)
		}
		if got := p.WithDefaults().Total; got != want.total {
			t.Errorf("%v: total %v, want %v", kind, got, want.total)
		}
		if got := p.AttemptTimeout(); got != want.attempt {
			t.Errorf("%v: %v an attempt, want %v", kind, got, want.attempt)
		}
	}
}

// the total holds whatever the counts, and the jitter's ceiling is cut to
// what is left.
func TestR3TotalIsHard(t *testing.T) {
	s := forbear.State{Attempt: 3, Start: epoch.Add(-28 * time.Second)}
	d := decide(forbear.Policy{}, s, transient)
	if want := 1900 * time.Millisecond; !d.Retry || d.Ceiling != want || d.Wait != want/2 {
		t.Errorf("2 s left: got %+v, want a ceiling of %v", d, want)
	}
	early := forbear.Policy{Kind: forbear.Event, Total: 20 * time.Second}
	if d := decide(early, forbear.State{Attempt: 6, Start: epoch.Add(time.Hour), Limit: 9, Limited: true}, transient); d.Ceiling != 19900*time.Millisecond {
		t.Errorf("a start in the future: got %+v, want no more than the total", d)
	}
	if d := decide(forbear.Policy{}, forbear.State{Deadline: time.Time{}.Add(1)}, transient); d.Retry {
		t.Errorf("a deadline in the first year: got %+v", d)
	}
	s.Start = epoch.Add(-29950 * time.Millisecond)
	if d := decide(forbear.Policy{}, s, transient); d.Retry || d.Reason != reason.Deadline {
		t.Errorf("50 ms left: got %+v, want no time for an attempt", d)
	}
}

// DNS failures get two attempts.
func TestR4DNSTwoAttempts(t *testing.T) {
	dns := forbear.Failure{Class: forbear.ClassDNS, Type: "dns_failure"}
	r := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
	s := forbear.State{}
	if d := r.Next(&s, dns, epoch); !d.Retry {
		t.Errorf("first: got %+v", d)
	}
	if d := r.Next(&s, dns, epoch); d.Retry || d.Reason != reason.DNSLimit {
		t.Errorf("second: got %+v", d)
	}
	// Another failure first does not use up DNS's own attempts.
	s = forbear.State{}
	r.Next(&s, transient, epoch)
	if d := r.Next(&s, dns, epoch); !d.Retry {
		t.Errorf("after a transient failure: got %+v", d)
	}
}

// POST and PATCH need a key of 1 to 64 characters.
func TestR6Keys(t *testing.T) {
	long := string(make([]byte, layer.MaxKeyLen+1))
	for _, tt := range []struct {
		name   string
		policy forbear.Policy
		key    string
		unsent bool
		retry  bool
	}{
		{"no key", forbear.Policy{}, "", false, false},
		{"key", forbear.Policy{}, "k", false, true},
		{"64 characters", forbear.Policy{}, long[:64], false, true},
		{"65 characters", forbear.Policy{}, long, false, false},
		{"refused by policy", forbear.Policy{Keys: forbear.KeyRefuse}, "k", false, false},
		{"never sent, strict reading", forbear.Policy{}, "", true, false},
		{"never sent, opted in", forbear.Policy{RetryUnsent: true}, "", true, true},
		{"sent, opted in", forbear.Policy{RetryUnsent: true}, "", false, false},
	} {
		f := transient
		f.Unsent = tt.unsent
		if d := decide(tt.policy, forbear.State{NeedsKey: true, Key: tt.key}, f); d.Retry != tt.retry {
			t.Errorf("%s: got %+v, want retry = %v", tt.name, d, tt.retry)
		}
	}
}
