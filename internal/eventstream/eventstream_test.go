//forbear:plain nothing runs at once
package eventstream_test

import (
	"net/http"
	"testing"

	"github.com/forbear-go/forbear/internal/eventstream"
)

func TestIs(t *testing.T) {
	for value, want := range map[string]bool{
		"":                                  false,
		"text/event":                        false,
		"text/event-stream":                 true,
		"Text/Event-Stream":                 true,
		"text/event-stream;charset=utf-8":   true,
		"text/event-stream ; charset=utf-8": true,
		"text/event-streams":                false,
		"text/event-stream+json":            false,
		"application/json":                  false,
	} {
		if got := eventstream.Is(http.Header{"Content-Type": {value}}); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	if eventstream.Is(http.Header{}) {
		t.Error("no Content-Type is a stream")
	}
}
