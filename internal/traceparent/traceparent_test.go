//forbear:plain nothing runs at once
package traceparent_test

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/traceparent"
)

func TestID(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for parent, want := range map[string]string{
		"00-" + id + "-" + span + "-01":                             id,
		"cc-" + id + "-" + span + "-01-what-is-to-come":             id,
		"00-" + id + "-" + span + "-01-more":                        "", // version 00 ends there
		"cc-" + id + "-" + span + "-01more":                         "",
		"cc-" + id + "-" + span + "-01-\n":                          "",
		"cc-" + id + "-" + span + "-01-" + strings.Repeat("a", 512): "",
		"ff-" + id + "-" + span + "-01":                             "",
		"00-" + strings.ToUpper(id) + "-" + span + "-01":            "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":        "",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":          "",
		"00-" + id + "-" + span:                                     "",
		"00 " + id + "-" + span + "-01":                             "",
		"":                                                          "", strings.Repeat("-", 55): "", strings.Repeat("é", 28): "",
	} {
		if got := traceparent.ID(parent); got != want {
			t.Errorf("%q: %q, want %q", parent, got, want)
		}
	}
	for state, want := range map[string]string{"a=1,b=2": "a=1,b=2", "a=\r\nX: y": "", strings.Repeat("a", 513): "", "ü": ""} {
		if got := traceparent.State(state); got != want {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
}
