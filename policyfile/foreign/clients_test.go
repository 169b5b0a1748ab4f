package foreign

import (
	"fmt"
	"strings"
	"testing"
)

// said is what is read from a file, in lines: units with their attempts and longest
// waits, and then what is refused, cannot be held, or could not be judged.
func said(name, text string) string {
	opened := Open(name, []byte(text), "")
	var b strings.Builder
	for _, f := range opened.Faults {
		fmt.Fprintf(&b, "fault %d: %s\n", f.Line, f.Message)
	}
	return b.String() + saidOf(Read(opened.Parts))
}

// saidOf lists the units, the findings and the notes of results.
func saidOf(results []Result) string {
	var b strings.Builder
	for _, result := range results {
		for _, d := range result.File.Dependencies {
			more := ""
			if d.AtLeast {
				more = " at least"
			}
			fmt.Fprintf(&b, "%s [%s] x%d%s, waits up to %v, attempt %v, total %v\n", d.Name, d.Route, d.Policy.Retries()+1, more, d.Policy.Backoff.Cap, d.Policy.PerAttempt, d.Policy.Total)
		}
		if result.File.Quiet > 0 {
			fmt.Fprintf(&b, "quiet %d\n", result.File.Quiet)
		}
		for _, f := range result.Refused {
			fmt.Fprintf(&b, "%d %s %s: %s\n", f.Line, f.Rule, f.Field, strings.TrimPrefix(f.Message, f.Dependency+": "))
		}
		for _, f := range result.File.Limits {
			fmt.Fprintf(&b, "cannot %s %s: %s\n", f.Rule, f.Field, f.Message)
		}
		if f := result.File.Unread; f != nil {
			fmt.Fprintf(&b, "unread %d: %s\n", f.Line, f.Message)
		}
		for _, f := range result.File.Unjudged {
			fmt.Fprintf(&b, "note %d: %s\n", f.Line, f.Message)
		}
	}
	return b.String()
}

// holds fails for each text in want that what was said lacks, and for each in not that
// it has.
func holds(t *testing.T, got string, want, not []string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	for _, line := range not {
		if strings.Contains(got, line) {
			t.Errorf("%q in\n%s", line, got)
		}
	}
}

func TestGRPC(t *testing.T) {
	const (
		policy  = `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 3, "retryableStatusCodes": ["UNAVAILABLE"]}`
		buckets = `"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}`
	)
	config := func(names, fields string) string {
		return `{"methodConfig": [{"name": [` + names + `], "timeout": "5s", ` + fields + `}], ` + buckets + `}`
	}
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{
			"names are units", "c.json", config(`{"service": "a.B", "method": "GetC"}, {"service": "a.B", "method": "CreateC"}`, policy),
			[]string{"a.B/GetC [a.B/GetC] x4, waits up to 1s, attempt 0s, total 5s\n", "a.B/CreateC [a.B/CreateC] x4", "1 R-6 methods: a method that writes", "cannot R-1"},
			[]string{"backoff.jitter", "note"},
		},
		{"a service", "c.json", config(`{"service": "a.B"}`, policy), []string{"a.B [a.B] x4", "note 1: every method of a.B is retried"}, []string{"R-6 methods"}},
		{"all services", "c.json", config(`{}`, policy), []string{"all-methods [all-methods] x4", "note 1: every method of every service"}, nil},
		{"a write by that name", "c.json", config(`{"service": "a.B", "method": "BatchWrite"}, {"service": "a.B", "method": "Mutate"}, {"service": "a.B", "method": "Listen"}`, policy), []string{"1 R-6 methods: a method that writes"}, []string{"note"}},
		{
			"no bucket", "c.json", strings.Replace(config(`{"service": "a.B"}, {"service": "c.D"}`, policy), ", "+buckets, "", 1),
			[]string{"1 R-7 budget: no retryThrottling: every failed call of this service config is retried\ncannot"},
			nil,
		},
		{"a bucket that lets no retry pass", "c.json", strings.Replace(config(`{"service": "a.B"}, {"service": "c.D"}`, policy), "10", "2", 1), []string{"quiet 2\nnote 1: maxTokens 2 allows no retry"}, []string{"a.B [", "R-", "note 1: every"}},
		{"a bucket that lets one pass", "c.json", strings.Replace(config(`{"service": "a.B"}`, policy), "10", "3", 1), []string{"a.B [a.B] x4"}, []string{"no retry"}},
		{"a hedge does not wait for a failure", "c.json", strings.Replace(config(`{"service": "a.B"}`, `"hedgingPolicy": {"maxAttempts": 3}`), "10", "2", 1), []string{"a.B [a.B] x3"}, []string{"no retry"}},
		{"a name that does not tell", "c.json", config(`{"service": "a.B", "method": "Reconcile"}`, policy), []string{"a.B/Reconcile: the name Reconcile does not show whether the method writes"}, []string{"R-6 methods"}},
		{"a write that replaces", "c.json", config(`{"service": "a.B", "method": "BatchDeleteC"}`, policy), nil, []string{"R-6"}},
		{"a manner and a write", "c.json", config(`{"service": "a.B", "method": "batch_create_c"}`, policy), []string{"R-6 methods"}, nil},
		{
			"nothing that gRPC demands", "c.json", config(`{"service": "a.B"}`, `"retryPolicy": {}`),
			[]string{"quiet 1\n", "1  refused: gRPC refuses the whole service config: maxAttempts is not", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes is empty"},
			[]string{"a.B [a.B]"},
		},
		{"a name twice", "c.json", config(`{"service": "a.B"}, {"service": "a.B"}`, policy), []string{"quiet 1\n", "refused: gRPC refuses the whole service config: the name a.B appears twice"}, nil},
		{"a method without a service", "c.json", config(`{"method": "C"}`, policy), []string{"quiet 1\n", "refused: gRPC refuses the whole service config: the method C has no service"}, []string{"all-methods ["}},
		{"a duration in milliseconds", "c.json", config(`{"service": "a.B"}`, strings.Replace(policy, "0.1s", "100ms", 1)), []string{"refused: gRPC refuses the whole service config: initialBackoff is not"}, []string{"a.B [a.B]"}},
		{"a timeout in milliseconds", "c.json", strings.Replace(config(`{"service": "a.B"}`, policy), "5s", "5000ms", 1), []string{"refused: gRPC refuses the whole service config: timeout is not"}, []string{"a.B [a.B]"}},
		{"no code of gRPC's", "c.json", config(`{"service": "a.B"}`, strings.Replace(policy, "UNAVAILABLE", "TIMEOUT", 1)), []string{"refused: gRPC refuses the whole service config: TIMEOUT is not a status code"}, []string{"a.B [a.B]"}},
		{"no tokens", "c.json", strings.Replace(config(`{"service": "a.B"}`, policy), `"maxTokens": 10, `, "", 1), []string{"refused: gRPC refuses the whole service config: maxTokens is not"}, []string{"a.B [a.B]"}},
		{"one attempt", "c.json", config(`{"service": "a.B"}`, strings.Replace(policy, "4", "1", 1)), []string{"maxAttempts is not a number of at least 2"}, []string{"a.B [a.B]"}},
		{"more than gRPC makes", "c.json", config(`{"service": "a.B"}`, strings.Replace(policy, "4", "9", 1)), []string{"x5", "cut maxAttempts 9 to 5"}, []string{"R-2"}},
		{
			"hedging", "c.json", config(`{"service": "a.B", "method": "Pay"}`, `"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["NOT_FOUND"]}`),
			[]string{"a.B/Pay [a.B/Pay] x3", "R-1 backoff.jitter: hedging sends up to 3 copies of a call, one every 500ms", "R-6 methods", "R-4 classify.grpc_NOT_FOUND"},
			nil,
		},
		{
			"snake case", "c.yaml", "method_config:\n- name: [{service: a.B, method: GetC}]\n  timeout: 5s\n  retry_policy: {max_attempts: 3, initial_backoff: 1s, max_backoff: 5s, backoff_multiplier: 2, retryable_status_codes: [14]}\nretry_throttling: {max_tokens: 10, token_ratio: 0.1}\n",
			[]string{"a.B/GetC [a.B/GetC] x3, waits up to 5s"},
			[]string{"R-7", "R-3", "quiet"},
		},
		{"a bound for attempts", "c.json", config(`{"service": "a.B"}`, strings.Replace(policy, "{", `{"perAttemptRecvTimeout": "1s", `, 1)), []string{"attempt 1s, total 5s"}, nil},
		{"no names", "c.json", config("", policy), []string{"quiet 1\n", "note 1: a method config without names"}, []string{"R-"}},
		{"no policy", "c.json", config(`{"service": "a.B"}`, `"waitForReady": true`), []string{"quiet 1\n"}, []string{"a.B", "R-"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}
