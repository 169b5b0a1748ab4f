package forbear_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// logged runs f with a default logger that writes JSON, and returns its lines.
func logged(t *testing.T, f func(t *testing.T)) []string {
	t.Helper()
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	synctest.Test(t, f)
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func doLogged(t *testing.T, p forbear.Policy, op func(context.Context) error) {
	t.Helper()
	r, err := forbear.New("payments", p, forbear.WithRand(half))
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Do(forbear.WithIdempotencyKey(forbear.WithCorrelationID(t.Context(), "c-1"), "k-1"), op)
}

// every retry is logged by default, with exactly these fields.
func TestR10DefaultLog(t *testing.T) {
	lines := logged(t, func(t *testing.T) { doLogged(t, forbear.Policy{MaxRetries: 2}, failing) })
	if len(lines) != 3 {
		t.Fatalf("%d lines, want two retries and the end:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	want := []map[string]any{
		{"msg": "retry", "attempt": 2.0, "backoff_ms": 500.0},
		{"msg": "retry", "attempt": 3.0, "backoff_ms": 1000.0},
		{"msg": "retries stopped", "attempt": 3.0, "backoff_ms": 0.0, "reason": "exhausted"},
	}
	for i, line := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		maps.Copy(want[i], map[string]any{
			"level": "WARN", "correlation_id": "c-1", "dependency": "payments", "max_attempts": 3.0,
			"error_type": "retryable_error", "idempotency_key": "k-1",
		})
		if !maps.Equal(got, want[i]) {
			t.Errorf("line %d:\n got %v\nwant %v", i, got, want[i])
		}
	}
}

// INTG-STD-033: every move of the breaker is logged at WARN, with its cause.
func TestBreakerLog(t *testing.T) {
	lines := logged(t, func(t *testing.T) {
		r, err := forbear.New("payments", forbear.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		b, now := r.Breaker(), time.Now()
		b.BudgetRefused(now)
		for range 20 {
			b.Record(breaker.Permit{}, breaker.Failed, now)
		}
		now = now.Add(11 * time.Second)
		probe, _ := b.Allow(now)
		b.Record(probe, breaker.Failed, now)
		b.Force(breaker.Closed, "jane", now)
		b.Force(breaker.Open, "jane", now)
	})
	want := []map[string]any{
		{"previous": "closed", "new": "open", "cause": "failures", "budget_spent": true, "open_for_ms": 5000.0},
		{"previous": "open", "new": "half-open", "cause": "waited"},
		{"previous": "half-open", "new": "open", "cause": "probe_failed", "open_for_ms": 5000.0},
		{"previous": "open", "new": "closed", "cause": "operator", "actor": "jane"},
		{"previous": "closed", "new": "open", "cause": "operator", "actor": "jane", "failure_rate": 0.0, "calls": 0.0},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		all := map[string]any{
			"level": "WARN", "msg": "circuit breaker moved", "dependency": "payments",
			"failure_rate": 1.0, "slow_rate": 0.0, "calls": 20.0, "budget_spent": false, "actor": "",
		}
		maps.Copy(all, want[i])
		if !maps.Equal(got, all) {
			t.Errorf("line %d:\n got %v\nwant %v", i, got, all)
		}
	}
}

func TestLogLevels(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"certificate": {x509.UnknownAuthorityError{}, "ERROR"},
		"terminal":    {forbear.Terminal(errFlaky), "DEBUG"},
		"unknown":     {errFlaky, "DEBUG"},
	} {
		lines := logged(t, func(t *testing.T) {
			doLogged(t, forbear.Policy{}, func(context.Context) error { return tt.err })
		})
		if len(lines) != 1 || !strings.Contains(lines[0], `"level":"`+tt.want+`"`) {
			t.Errorf("%s: got %v, want one line at %s", name, lines, tt.want)
		}
	}
}

func TestSilenceIsExplicit(t *testing.T) {
	lines := logged(t, func(t *testing.T) {
		_ = quiet(t, forbear.Policy{}).Do(t.Context(), failing)
		if err := quietlyObserved(t).Do(t.Context(), failing); err == nil {
			t.Error("no error")
		}
	})
	if len(lines) != 0 {
		t.Errorf("got %v", lines)
	}
	lines = logged(t, func(t *testing.T) {
		doLogged(t, forbear.Policy{}, func(context.Context) error { return nil })
	})
	if len(lines) != 0 {
		t.Errorf("a call that succeeds at once: got %v", lines)
	}
}

func quietlyObserved(t *testing.T) *forbear.Retryer {
	r, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver((&recorder{}).observer()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What comes from outside cannot start a line of its own in a text log, nor
// grow without bound.
func TestLogInjectionIsStripped(t *testing.T) {
	var out bytes.Buffer
	o := forbear.LogObserver(slog.New(slog.NewTextHandler(&out, nil)), nil)
	evil := "x\nlevel=ERROR msg=\"all is lost\"\r\u2028\u2029\u0085\x1b[2J\x00" + strings.Repeat("a", 1000)
	info := forbear.Info{Dependency: evil, CorrelationID: evil, IdempotencyKey: evil, Attempt: 2, MaxAttempts: 4}
	o.RetryScheduled(t.Context(), forbear.RetryScheduled{Info: info, Failure: forbear.Failure{Type: evil}})
	o.Stopped(t.Context(), forbear.Stopped{Info: info, Failure: forbear.Failure{Type: evil}})
	got := out.String()
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, got)
	}
	for _, bad := range []string{"\r", "\u2028", "\u2029", "\u0085", "\x1b", "\x00", `\n`, `\x1b`, `\u2028`, strings.Repeat("a", 129)} {
		if strings.Contains(got, bad) {
			t.Errorf("the log holds %q", bad)
		}
	}
}

// Secrets in the text of errors reach neither the log nor an observer's label.
func TestSecretsReachNoLog(t *testing.T) {
	secrets := []string{"Bearer eyJhbGciOi", "4111111111111111", "token=s3cr3t", "jane@example.com"}
	text := errors.New(`Post "https://pay.test/charge?` + strings.Join(secrets, "&") + `"`)
	for name, err := range map[string]error{
		"retryable":   forbear.Retryable(text, forbear.Hint{}),
		"terminal":    forbear.Terminal(text),
		"unknown":     text,
		"certificate": errors.Join(text, x509.UnknownAuthorityError{}),
	} {
		lines := logged(t, func(t *testing.T) {
			doLogged(t, forbear.Policy{}, func(context.Context) error { return err })
		})
		if len(lines) == 0 {
			t.Errorf("%s: nothing was logged", name)
		}
		if i := slices.IndexFunc(secrets, func(s string) bool { return strings.Contains(strings.Join(lines, "\n"), s) }); i >= 0 {
			t.Errorf("%s: %q is in the log:\n%s", name, secrets[i], strings.Join(lines, "\n"))
		}
	}
}
