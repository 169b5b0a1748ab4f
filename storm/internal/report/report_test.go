package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestAmount(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 7.25: "7.25", 99.96: "100", 123.4: "123", 9999: "9999", 12_345: "12.3 k", 4.5e6: "4.5 M", 2.4e10: "24 G", -0.5: "-0.5",
	} {
		if got := Amount(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestAppendNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 12: "12", 0.1: "0.1", 1.0 / 3: "0.333333", 123456.789: "123457", 1e-7: "0.0000001"} {
		if got := string(AppendNumber(nil, v)); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestPeakPassesOverGaps(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{nan, nan}, 0},
		{[]float64{nan, 2, nan, 1}, 2},
		{[]float64{-3, -2}, 0},
	} {
		if got := Peak(tt.values); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.values, got, tt.want)
		}
	}
}

// A character is the peak of the values that fall on it; no value is a space.
func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		values []float64
		width  int
		top    float64
		want   string
	}{
		{"from 0 to the top", []float64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 8, "▁▂▃▄▅▆▇██"},
		{"peaks", []float64{0, 8, 0, 0}, 2, 8, "█▁"},
		{"fewer values than characters", []float64{8, 0}, 10, 8, "█▁"},
		{"a gap", []float64{8, nan, 8}, 3, 8, "█ █"},
		{"no scale", []float64{0, 0}, 2, 0, "▁▁"},
		{"above the top", []float64{100}, 1, 8, "█"},
	} {
		if got := Sparkline(tt.values, tt.width, tt.top); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestRowsMarkTheFault(t *testing.T) {
	var b strings.Builder
	WriteRows(&b, 10*time.Second, [][2]time.Duration{{2 * time.Second, 4 * time.Second}, {7 * time.Second, 8 * time.Second}}, 10,
		Row{Name: "load", Values: make([]float64, 10), Top: 1, Unit: "/s"})
	if want := "fault         ==   =\nload        ▁▁▁▁▁▁▁▁▁▁ 0/s\n"; b.String() != want {
		t.Errorf("got %q, want %q", &b, want)
	}
}

func TestRoundUp(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.2: 1.5, 2.2: 3, 45: 50, 760: 1000, 0.06: 0.075, math.NaN(): 1} {
		if got := roundUp(v); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}

func TestCSVLeavesGaps(t *testing.T) {
	var b bytes.Buffer
	err := WriteCSV(&b, "a,b,c", 2, func(i int) []any { return []any{"x", float64(i), math.NaN()} })
	if want := "a,b,c\nx,0,\nx,1,\n"; err != nil || b.String() != want {
		t.Errorf("%v: %q, want %q", err, &b, want)
	}
}

// Every picture is XML, with all of its texts escaped and without a NaN; so is the page.
func TestPicturesAreWellFormed(t *testing.T) {
	const title = `a <script>"x"</script> & more`
	nan := math.NaN()
	chart := Chart{Title: title, Subtitle: title, Duration: time.Second, Faults: [][2]time.Duration{{0, time.Second}}, Panels: []Panel{
		{Title: title, Level: 1, Unit: title, Note: title, Lines: []Line{{Name: title, Color: Red, Values: []float64{nan, 1, nan, 2, 3}, Area: true}, {Name: "b"}}},
		{Title: "none"},
	}}
	grid := Grid{Title: title, About: title, Rows: []string{"1x", title}, Columns: []string{title}, Cell: func(i, j int) Cell { return Cell{"#fff", title, 'X'} }}
	shares := Shares{Title: title, About: title, At: []float64{0.5, 1}, Lines: []Line{{Name: title, Values: []float64{0.5, 0}}}}
	for name, write := range map[string]func(io.Writer) error{"chart": chart.WriteSVG, "grid": grid.WriteSVG, "shares": shares.WriteSVG} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); strings.Contains(s, "<script") || strings.Contains(s, "NaN") {
			t.Errorf("%s: not escaped, or not a number:\n%s", name, s)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	var b bytes.Buffer
	page := Page{Title: title, About: title, Columns: []string{title}, Runs: []Run{{
		Name: title, Verdict: title, Headline: title, Origin: title, Cells: []string{title}, Notes: []string{title}, Chart: chart,
	}}}
	if err := page.WriteHTML(&b); err != nil || strings.Contains(b.String(), "<script") || strings.Contains(b.String(), `class="a <`) || strings.Contains(b.String(), `"x"`) || strings.Count(b.String(), "<svg") != 2 {
		t.Errorf("page: %v\n%s", err, &b)
	}
}
