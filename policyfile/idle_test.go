package policyfile

import (
	"strings"
	"testing"
	"time"
)

// TestBodyIdle: a file says off where Go has a negative bound, and writes it back.
func TestBodyIdle(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  time.Duration
		again string
	}{
		{"body_idle: off", -1, "body_idle: off"},
		{"body_idle: 'off'", -1, "body_idle: off"},
		{"body_idle: 30s", 30 * time.Second, "body_idle: 30s"},
		{"max_retries: 1", 0, "max_retries: 1"},
	} {
		f, err := Parse("f", []byte("dependencies: {a: {"+tc.text+"}}"))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := f.Dependencies[0].Policy.BodyIdle; got != tc.want {
			t.Errorf("%s: %v, want %v", tc.text, got, tc.want)
		}
		text, err := Marshal(f)
		if err != nil || !strings.Contains(string(text), tc.again+"\n") {
			t.Errorf("%s: written as %s (%v), want %s", tc.text, text, err, tc.again)
		}
		if back, err := Parse("f", text); err != nil || back.Dependencies[0].Policy.BodyIdle != tc.want {
			t.Errorf("%s: read back as %+v (%v)", tc.text, back, err)
		}
	}
}

// TestNegativeDurations: what is negative in Go, for no bound, has a word of its
// own in a file; a minus sign there is a slip.
func TestNegativeDurations(t *testing.T) {
	for text, want := range map[string]string{
		"body_idle: -1s":            "body_idle is negative",
		"body_idle: 0s":             "body_idle is 0: leave it out for the default",
		"body_idle: none":           `body_idle is "none": want off, or a duration such as 500ms, 1s or 2m`,
		"total: -1s":                "total is negative",
		"dedup: -1s":                "dedup is negative",
		"keys: {retention: -1s}":    "keys.retention is negative",
		"breaker: {open_for: -10s}": "breaker.open_for is negative",
	} {
		_, err := Parse("f", []byte("dependencies: {a: {"+text+"}}"))
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestIdempotent: the file's word for a dependency whose operations are all safe to
// repeat.
func TestIdempotent(t *testing.T) {
	f, err := Parse("f", []byte("dependencies: {a: {idempotent: true}}"))
	if err != nil || !f.Dependencies[0].Policy.Idempotent {
		t.Fatalf("got %+v, %v", f, err)
	}
	if text, err := Marshal(f); err != nil || !strings.Contains(string(text), "idempotent: true\n") {
		t.Errorf("written as %s (%v)", text, err)
	}
}
