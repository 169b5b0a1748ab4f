package webhook

import (
	"errors"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// An endpoint that could not be served is refused, with all of its faults at
// once: a user who mends one must not meet the next.
func TestEndpointsAreChecked(t *testing.T) {
	all := Endpoint{ID: "a"}
	var wants []string
	for _, c := range []struct {
		name string
		edit func(*Endpoint)
		want string
	}{
		{"id", func(e *Endpoint) { e.ID = "a/b" }, "id is not"},
		{"version", func(e *Endpoint) { e.Version = -2 }, "version -2"},
		{"scheme", func(e *Endpoint) { e.URL = "ftp://example.com/" }, "https:// or http://"},
		{"format", func(e *Endpoint) { e.Format = "xml" }, `format "xml"`},
		{"concurrency", func(e *Endpoint) { e.Concurrency = maxConcurrency + 1 }, "concurrency 1001"},
		{"rate", func(e *Endpoint) { e.Rate = -1 }, "rate -1"},
		{"disable_after", func(e *Endpoint) { e.DisableAfter = -1 }, "disable_after"},
		{"header", func(e *Endpoint) { e.Headers = []Header{{Name: "Authorization", Value: "x"}} }, "header Authorization"},
		{"placeholder", func(e *Endpoint) { e.Secrets = []string{deadletter.Masked} }, "secrets[0] is ***"},
		{"kind", func(e *Endpoint) { e.Policy.Kind = forbear.Batch }, "policy is of kind"},
		{"policy", func(e *Endpoint) { e.Policy.MaxAttempts = 99 }, "policy: "},
	} {
		e := Endpoint{ID: "a", URL: "https://example.com/"}
		if err := e.Validate(Guard{}); err != nil {
			t.Fatal(err)
		}
		c.edit(&e)
		c.edit(&all)
		wants = append(wants, c.want)
		if err := e.Validate(Guard{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	err := all.Validate(Guard{})
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("all at once: %q is missing in %v", want, err)
		}
	}
}
