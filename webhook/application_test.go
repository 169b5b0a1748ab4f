package webhook

import (
	"errors"
	"strings"
	"testing"
)

func TestSubscribes(t *testing.T) {
	for _, c := range []struct {
		types []string
		of    string
		want  bool
	}{
		{nil, "order.shipped", true},
		{nil, "", true},
		{[]string{"*"}, "", true},
		{[]string{"order.shipped"}, "order.shipped", true},
		{[]string{"order.shipped"}, "order.shipped.late", false},
		{[]string{"order.shipped"}, "", false},
		{[]string{"order.*"}, "order.shipped", true},
		{[]string{"order.*"}, "order.item.added", true},
		{[]string{"order.*"}, "order", false},
		{[]string{"order.*"}, "order.", false},
		{[]string{"order.*"}, "orders.shipped", false},
		{[]string{"invoice.paid", "order.*"}, "order.shipped", true},
		{[]string{"invoice.paid", "order.*"}, "invoice.sent", false},
	} {
		if got := (&Endpoint{Types: c.types}).Subscribes(c.of); got != c.want {
			t.Errorf("%q subscribe to %q: %v, want %v", c.types, c.of, got, c.want)
		}
	}
}

// A pattern that looks like more than it does is refused, and says at which place.
func TestTypesAreChecked(t *testing.T) {
	e := Endpoint{ID: "a", URL: "https://example.com/", Application: "acme"}
	for _, s := range []string{"", ".*", "*.shipped", "order.*.late", "order*", "**", "order.**", "a\nb", strings.Repeat("x", 257)} {
		e.Types = []string{"order.*", s}
		if err := e.Validate(Guard{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "types[1]") {
			t.Errorf("types %q: %v", s, err)
		}
	}
	e.Types = []string{"*", "order.*", "order.shipped", "com.example.v1"}
	if err := e.Validate(Guard{}); err != nil {
		t.Error(err)
	}
	e.Application = ""
	if err := e.Validate(Guard{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("types without an application: %v", err)
	}
}

// All faults of an application are found at once, and a placeholder is none of its
// secrets.
func TestApplicationIsChecked(t *testing.T) {
	a := Application{ID: "a/b", Name: "a\nb", Rate: -1, MaxEndpoints: 1001, Secrets: []string{"***"}}
	err := a.Validate()
	for _, want := range []string{"id is not", "name is", "rate -1", "max_endpoints 1001", "secrets[0]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if m := (Application{Secrets: []string{"env:A", "whsec_x"}}).Mask(); m.Secrets[0] != "env:A" || m.Secrets[1] != "***" {
		t.Errorf("masked it has %q", m.Secrets)
	}
	good := Application{ID: "acme"}
	if err := good.Validate(); err != nil || good.Limit() != DefaultEndpoints {
		t.Errorf("%v, at most %d endpoints", err, good.Limit())
	}
}

func TestMessageNamesOneKindOfPlace(t *testing.T) {
	for _, m := range []Message{{}, {Application: "acme", Endpoints: []string{"a"}}, {Application: "a/b"}} {
		if err := m.check(MaxPayload); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if m := (Message{Application: "acme"}); m.check(MaxPayload) != nil {
		t.Error(m.check(MaxPayload))
	}
}
