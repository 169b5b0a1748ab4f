package durable

import (
	"testing"
	"time"
)

// TestDurationsInWords: what is around a duration stays as it is, whatever its text looks
// like.
func TestDurationsInWords(t *testing.T) {
	type inner struct {
		Took time.Duration `json:"took_ns"`
		Text string        `json:"text"`
	}
	v := struct {
		inner
		Odd   string                   `json:"odd_ns"`
		List  []inner                  `json:"list"`
		None  []inner                  `json:"none"`
		By    map[string]time.Duration `json:"by"`
		Lists [][]inner                `json:"lists"`
		At    time.Time                `json:"at"`
		Any   any                      `json:"any"`
		Last  *inner                   `json:"last"`
	}{
		inner: inner{Took: time.Minute, Text: `"],}{[:,\`}, Odd: `\\"`, List: []inner{{Text: `{"took_ns":1}`}, {Took: 1500 * time.Millisecond}},
		By: map[string]time.Duration{`"a,":\`: 2 * time.Second}, Lists: [][]inner{{}, {{Took: time.Second, Text: "\\"}}}, Any: []any{1, "}", []any{}},
	}
	text, err := encode(map[string]any{"items": v, "next": "\"]"})
	if want := `{"items":{"took":"1m","text":"\"],}{[:,\\","odd_ns":"\\\\\"","list":[{"took":"0s","text":"{\"took_ns\":1}"},{"took":"1.5s","text":""}],` +
		`"none":null,"by":{"\"a,\":\\":"2s"},"lists":[[],[{"took":"1s","text":"\\"}]],"at":"0001-01-01T00:00:00Z","any":[1,"}",[]],"last":null},"next":"\"]"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want\n%s", text, err, want)
	}
}
