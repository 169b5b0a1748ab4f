//forbear:plain nothing runs at once
package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	known := []string{"max_retries", "max_attempts", "total", "per_attempt", "budget", "serve"}
	tests := []struct {
		typed, want string
	}{
		{"max_retires", "max_retries"},
		{"maxRetries", "max_retries"},
		{"max-attempts", "max_attempts"},
		{"totl", "total"},
		{"perattempt", "per_attempt"},
		{"buget", "budget"},
		{"sevre", "serve"},
		{"jitter", ""},
		{"", ""},
		{strings.Repeat("budget", 20), ""},
	}
	for _, tt := range tests {
		got, ok := Of(tt.typed, known)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("Of(%q) = %q, %v; want %q", tt.typed, got, ok, tt.want)
		}
	}
}

func TestHint(t *testing.T) {
	known := []string{"total", "budget"}
	if got, want := Hint("totl", known, ": see help"), ": did you mean total?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Hint("jitter", known, ": see help"), ": see help"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
