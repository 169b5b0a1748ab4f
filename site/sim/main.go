// Command sim is the retry-storm simulator in a web page: it is compiled to
// WebAssembly, where it hands a function to the page. Elsewhere it runs one
// scenario of standard input, so that the two can be held against each other.
package main

import (
	"context"
	"encoding/json"

	"github.com/forbear-go/forbear/storm"
)

// shown is what the page draws of a run. Summary is what `forbear sim run -o json`
// has for the same scenario.
type shown struct {
	Headline string        `json:"headline"`
	Duration float64       `json:"duration_s"`
	Trigger  []float64     `json:"trigger,omitempty"`
	Summary  storm.Summary `json:"summary"`
	Fresh    []float64     `json:"fresh"` // first attempts a second
	Retry    []float64     `json:"retry"` // retries a second
	Good     []float64     `json:"good"`  // calls a second that end well
}

// run simulates a scenario, which is JSON.
func run(scenario []byte) ([]byte, error) {
	var s storm.Scenario
	if err := json.Unmarshal(scenario, &s); err != nil {
		return nil, err
	}
	r, err := storm.Run(context.Background(), s, storm.Options{})
	if err != nil {
		return nil, err
	}
	out := shown{
		Headline: r.Headline(), Duration: r.Duration.Seconds(), Summary: r.Summary,
		Fresh: r.Series.Fresh, Retry: r.Series.Retry, Good: r.Series.Good,
	}
	if r.Trigger != nil {
		out.Trigger = []float64{r.Trigger[0].Seconds(), r.Trigger[1].Seconds()}
	}
	return json.Marshal(out)
}
