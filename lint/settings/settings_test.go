//forbear:plain rules have no goroutines; package lint runs them at once
package settings

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/lint/internal/config"
)

const full = `
confidence: medium
disable: [FB1054]
key_headers: [X-Request-Token]
max_attempts: 6
retryable: [404, NOT_FOUND]
dependencies:
- name: search
  code: [internal/search/...]
  max_attempts: 3
  final: [503]
waivers:
- {id: W-7, rule: R-1, code: [internal/legacy/client.go], reason: goes with the old vendor, expires: 2099-06-30}
libraries:
- {package: [example.com/again/...], call: Every, verdict: fixed, message: again.Every waits the same time}
`

// What is written is read again as it was.
func TestRoundTrip(t *testing.T) {
	s, err := Parse("s.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	more, err := again.YAML()
	if err != nil || string(more) != string(text) {
		t.Errorf("got %v\n%s\nwant\n%s", err, more, text)
	}
	for _, want := range []string{"confidence: medium", "FB1054", "X-Request-Token", "max_attempts: 6", "NOT_FOUND", "internal/search/...", "W-7", "example.com/again/..."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
}

// Faults come all at once, each with its line and column.
func TestFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "librarys: []", "s.yaml:1:1: unknown key \"librarys\": did you mean libraries?"},
		{"unknown key within", "libraries:\n- {package: [x], call: a, verdict: fixed, massage: m}", "s.yaml:2:43: unknown key \"massage\": did you mean message?"},
		{"fix of a library", "libraries:\n- {package: [x], call: a, verdict: fixed, message: m, fix: {name: b}}", "s.yaml:2:3: libraries: entry 1: fix is no longer supported"},
		{"key twice", "disable: []\ndisable: []", "s.yaml:2:1: mapping key \"disable\" already defined at line 1"},
		{"no mapping", "- a", "s.yaml:1:1: cannot read seq into settings"},
		{"not YAML", "a: [", "s.yaml"},
		{"type", "max_attempts: many", "s.yaml:1:15: cannot read str `many` into int"},
		{"confidence", "confidence: sure", "s.yaml:1:13: confidence \"sure\" is unknown: want low, medium or high"},
		{"rule", "disable: [FB1001, FB9999]", "s.yaml:1:19: rule \"FB9999\" is unknown"},
		{"header", "key_headers: [\"X Token\"]", "s.yaml:1:15: \"X Token\" is not the name of a header"},
		{"response", "retryable: [425]", "s.yaml:1:13: retryable: \"425\" is not one of these: 400,"},
		{"both", "retryable: [404]\nfinal: [404]", "s.yaml:2:9: 404 is both retryable and final"},
		{"no code", "dependencies:\n- name: a", "s.yaml:2:3: code is missing"},
		{"absolute", "dependencies:\n- name: a\n  code: [/src]", "s.yaml:3:10: code: \"/src\" is not below the module's root"},
		{"outside", "dependencies:\n- name: a\n  code: [../b]", "s.yaml:3:10: code: \"../b\" is not below the module's root"},
		{"star", "dependencies:\n- name: a\n  code: [\"internal/*/client\"]", "s.yaml:3:10: code: \"internal/*/client\": * stands in a file's name only"},
		{"certificates", "waivers:\n- {rule: R-9, code: [a], reason: r, expires: 2099-01-01}", "s.yaml:2:10: rule is \"R-9\": R-9 (certificates and credentials) cannot be waived"},
		{"no reason", "waivers:\n- {rule: R-1, code: [a], expires: 2099-01-01}", "s.yaml:2:3: a waiver needs a reason"},
		{"no day", "waivers:\n- {rule: R-1, code: [a], reason: r, expires: soon}", "s.yaml:2:46: expires is \"soon\""},
		{"library", "libraries:\n- {package: [x], verdict: odd, message: m}", "s.yaml:2:3: libraries: entry 1: want exactly one of call, value, literal, field"},
		{"verdict", "libraries:\n- {package: [x], call: a, verdict: odd, message: m}", "verdict \"odd\" is unknown: want one of fixed, no-jitter"},
		{"expression", "libraries:\n- {package: [x], call: \"(\", verdict: fixed, message: m}", "s.yaml:2:3: libraries: entry 1: error parsing regexp"},
		{"no message", "libraries:\n- {package: [x], call: a, verdict: fixed}", "message is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("s.yaml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	_, err := Parse("s.yaml", []byte("confidence: sure\nmax_attempts: -1\n"))
	if err == nil || strings.Count(err.Error(), "s.yaml:") != 2 {
		t.Errorf("got %v, want both faults", err)
	}
}

// Empty settings, and none, are the defaults.
func TestDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "null"} {
		s, err := Parse("s.yaml", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if l, name := s.For(config.Place{Package: "p"}); l.MaxAttempts != 11 || name != "" {
			t.Errorf("%q: got %d attempts for %q, want 11", text, l.MaxAttempts, name)
		}
	}
}

// Whoever applies settings has these and none of those before.
func TestApplyReplaces(t *testing.T) {
	first, err := Parse("s.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Apply(); err != nil {
		t.Fatal(err)
	}
	if got := config.Current(); got.MaxAttempts != 6 || !got.Disabled("fb1054") {
		t.Errorf("got %+v, want the settings of the file", got)
	}
	if err := (&Settings{}).Apply(); err != nil {
		t.Fatal(err)
	}
	if got := config.Current(); got.MaxAttempts != 0 || got.Disabled("FB1054") || len(got.Waivers) > 0 {
		t.Errorf("got %+v, want defaults", got)
	}
}
