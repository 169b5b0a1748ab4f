package page

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// encode writes the response by hand: its series are long, and four digits of
// each number are enough for a screen.
func encode(results []storm.Compared, herds []herd, took time.Duration) []byte {
	b := make([]byte, 0, 64<<10)
	b = append(b, `{"took_ms":`...)
	b = short(b, float64(took.Microseconds())/1e3)
	b = append(b, `,"results":[`...)
	for i, c := range results {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResult(b, c)
	}
	b = append(b, `],"herds":[`...)
	for i, h := range herds {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendJSON(b, h.name)
		b = append(b, `,"counts":`...)
		b = append(series(b, h.counts), '}')
	}
	return append(b, "]}\n"...)
}

// appendJSON appends v, or null where it has no JSON.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// appendResult appends one variant: what encoding/json makes of its head, and its
// series in the same object.
func appendResult(b []byte, c storm.Compared) []byte {
	r := c.Result
	head := struct {
		Name     string           `json:"name"`
		Title    string           `json:"title"`
		Headline string           `json:"headline"`
		Engine   storm.EngineKind `json:"engine"`
		Step     storm.Duration   `json:"step,omitzero"`
		Duration float64          `json:"duration_s"`
		Trigger  []float64        `json:"trigger,omitempty"`
		Notes    []string         `json:"notes,omitempty"`
		Summary  storm.Summary    `json:"summary"`
	}{c.Variant.Name, c.Variant.Title, r.Headline(), r.Engine, r.Step, r.Duration.Seconds(), nil, r.Notes, r.Summary}
	if r.Trigger != nil {
		head.Trigger = []float64{r.Trigger[0].Seconds(), r.Trigger[1].Seconds()}
	}
	b = appendJSON(b, head)
	b = b[:len(b)-1] // open it again
	s := &r.Series
	for _, v := range []struct {
		name   string
		values []float64
	}{
		{"offered", s.Offered},
		{"fresh", s.Fresh},
		{"retry", s.Retry},
		{"good", s.Good},
		{"multiplier", s.Multiplier},
		{"p50", s.P50Float()},
		{"p99", s.P99Float()},
		{"queue", s.Queue},
		{"budget", s.Budget},
		{"breaker", s.Breaker},
	} {
		b = append(b, ',')
		b = appendJSON(b, v.name)
		b = append(b, ':')
		b = series(b, v.values)
	}
	return append(b, '}')
}

// series appends an array of short numbers.
func series(b []byte, values []float64) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = short(b, v)
	}
	return append(b, ']')
}

// short writes v with four significant digits, NaN as null: a curve has a gap there.
// Whole numbers keep all digits.
func short(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', 4, 64)
}
