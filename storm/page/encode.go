package page

import (
	"math"
	"strconv"

	"github.com/forbear-go/forbear/storm"
	"github.com/forbear-go/forbear/storm/internal/report"
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

	Offered    curve `json:"offered"`
	Fresh      curve `json:"fresh"`
	Retry      curve `json:"retry"`
	Good       curve `json:"good"`
	Multiplier curve `json:"multiplier"`
	P50        curve `json:"p50"`
	P99        curve `json:"p99"`
	Queue      curve `json:"queue"`
	Budget     curve `json:"budget"`
	Breaker    curve `json:"breaker"`
}

// resultOf returns what the page shows of one run.
func resultOf(v storm.Variant, r *storm.Result) result {
	s := &r.Series
	shown := result{
		Name: v.Name, Title: v.Title, Headline: r.Headline(), Scale: r.Scale,
		Duration: r.Duration.Seconds(), Notes: r.Notes, Summary: r.Summary,
		Offered: s.Offered, Fresh: s.Fresh, Retry: s.Retry, Good: s.Good, Multiplier: s.Multiplier,
		P50: curve(s.P50), P99: curve(s.P99), Queue: s.Queue, Budget: s.Budget, Breaker: s.Breaker,
	}
	if r.Trigger != nil {
		shown.Trigger = []float64{r.Trigger[0].Seconds(), r.Trigger[1].Seconds()}
	}
	return shown
}

// curve is a series for a screen. There may be a hundred of them in a response, and
// four digits of each number are enough.
type curve []float64

// MarshalJSON implements [json.Marshaler]. What is not a number is null: the curve has
// a gap there.
func (c curve) MarshalJSON() ([]byte, error) { return report.AppendArray(nil, c, short), nil }

// short writes v with four significant digits. Whole numbers keep all digits.
func short(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', 4, 64)
}
