//forbear:plain rules have no goroutines; package lint runs them at once
package config

import (
	"testing"
	"time"
)

func TestPatterns(t *testing.T) {
	at := Place{Module: "example.com/m", Package: "example.com/m/internal/pay", File: "/src/m/internal/pay/client.go"}
	root := Place{Module: "example.com/m", Package: "example.com/m", File: "/src/m/main.go"}
	lost := Place{Package: "example.com/m/internal/pay", File: "client.go"}
	tests := []struct {
		pattern Pattern
		at      Place
		want    bool
	}{
		{"internal/pay", at, true},
		{"./internal/pay", at, true},
		{"internal/pay/", at, true},
		{"internal/pay/...", at, true},
		{"internal/...", at, true},
		{"...", at, true},
		{"./...", at, true},
		{"example.com/m/internal/pay", at, true},
		{"example.com/m/...", at, true},
		{"internal/pay/client.go", at, true},
		{"internal/pay/*.go", at, true},
		{"internal/pay/server.go", at, false},
		{"internal/p", at, false},
		{"internal/p...", at, false},
		{"pay", at, false},
		{"internal", at, false},
		{".", at, false},
		{".", root, true},
		{"main.go", root, true},
		{"main.go", at, false},
		{"internal/pay", lost, true},
		{"pay/...", lost, true},
		{"ay", lost, false},
	}
	for _, tt := range tests {
		if err := tt.pattern.Check(); err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
		}
		if got := tt.at.in(tt.pattern); got != tt.want {
			t.Errorf("%s in %s: got %v, want %v", tt.at.Package, tt.pattern, got, tt.want)
		}
	}
}

// The last day counts, and the one after it does not.
func TestDay(t *testing.T) {
	last := time.Date(2027, 6, 30, 23, 59, 59, 0, time.UTC)
	if d := Day("2027-06-30"); !d.Holds(last) || d.Holds(last.Add(time.Second)) {
		t.Errorf("%s: got %v and %v, want true and false", d, d.Holds(last), d.Holds(last.Add(time.Second)))
	}
	if Day("").Holds(last) {
		t.Error("no day holds at no time")
	}
}

func TestFor(t *testing.T) {
	s := &Settings{
		Limits: Limits{MaxAttempts: 6, Retryable: []string{"404"}},
		Dependencies: []Dependency{
			{Name: "pay", Code: []Pattern{"internal/pay/..."}, Limits: Limits{MaxAttempts: 2}},
			{Name: "search", Code: []Pattern{"internal/..."}, Limits: Limits{Final: []string{"503"}}},
		},
	}
	tests := []struct {
		pkg, name          string
		attempts           int
		notFound, overload bool // may be retried
	}{
		{"m/internal/pay", "pay", 2, true, true},
		{"m/internal/find", "search", 6, false, false},
		{"m/cmd", "", 6, true, true},
	}
	for _, tt := range tests {
		l, name := s.For(Place{Module: "m", Package: tt.pkg})
		if name != tt.name || l.MaxAttempts != tt.attempts || l.MayRetry("404", false) != tt.notFound || l.MayRetry("503", true) != tt.overload {
			t.Errorf("%s: got %q with %+v, want %+v", tt.pkg, name, l, tt)
		}
	}
}

// A waiver that has expired, is for another rule or for other code lifts
// nothing, and is not used.
func TestLift(t *testing.T) {
	at := Place{Module: "m", Package: "m/internal/old"}
	tests := []struct {
		name   string
		waiver Waiver
		lifts  bool
	}{
		{"standard's rule", Waiver{Rule: "R-1", Code: []Pattern{"internal/old"}, Expires: "2099-01-01"}, true},
		{"linter's rule", Waiver{Rule: "FB1001", Code: []Pattern{"internal/old"}, Expires: "2099-01-01"}, true},
		{"expired", Waiver{Rule: "R-1", Code: []Pattern{"internal/old"}, Expires: "2020-01-01"}, false},
		{"other code", Waiver{Rule: "R-1", Code: []Pattern{"internal/new"}, Expires: "2099-01-01"}, false},
		{"other rule", Waiver{Rule: "R-2", Code: []Pattern{"internal/old"}, Expires: "2099-01-01"}, false},
	}
	for i := range tests {
		tt := &tests[i]
		t.Run(tt.name, func(t *testing.T) {
			s := &Settings{Waivers: []*Waiver{&tt.waiver}}
			if got := s.Lift(at, "R-1", "FB1001"); (got != nil) != tt.lifts || tt.waiver.Used() != tt.lifts {
				t.Errorf("got %v, used %v; want %v", got != nil, tt.waiver.Used(), tt.lifts)
			}
		})
	}
}
