package page

import (
	"math"
	"strconv"

	"github.com/forbear-go/forbear/storm"
)

// response is what the page gets: a result for each variant, and the herds.
type response struct {
	Took    float64  `json:"took_ms"`
	Results []result `json:"results"`
	Herds   []herd   `json:"herds"`
}

// result is one variant: what its curves are called, its numbers, and the curves.
type result struct {
	Name     string        `json:"name"`
	Title    string        `json:"title"`
	Headline string        `json:"headline"`
	Scale    float64       `json:"scale,omitzero"`
	Duration float64       `json:"duration_s"`
	Trigger  []float64     `json:"trigger,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	Summary  storm.Summary `json:"summary"`
	storm.Series
}

// resultOf returns what the page shows of one run, whose series it rounds. There may be
// a hundred of them in a response.
func resultOf(v storm.Variant, r *storm.Result) result {
	s := &r.Series
	for _, curve := range [][]float64{s.Offered, s.Fresh, s.Retry, s.Good, s.Failed, s.Multiplier, s.P50, s.P99, s.Queue, s.Budget, s.Breaker, s.Wasted} {
		for i, v := range curve {
			curve[i] = short(v)
		}
	}
	shown := result{
		Name: v.Name, Title: v.Title, Headline: r.Headline(), Scale: r.Scale,
		Duration: r.Duration.Seconds(), Notes: r.Notes, Summary: r.Summary, Series: *s,
	}
	if r.Trigger != nil {
		shown.Trigger = []float64{r.Trigger[0].Seconds(), r.Trigger[1].Seconds()}
	}
	return shown
}

// short returns v with four significant digits, which are enough for a screen. Whole
// numbers keep all digits.
func short(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what is formatted can be parsed
	return v
}
