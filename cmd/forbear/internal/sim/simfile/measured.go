package simfile

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/strict"
	"github.com/forbear-go/forbear/storm"
)

// maxMeasured bounds a file of measurements, in bytes: four times what the longest load
// takes. maxSpan bounds its time, as that of a run.
const (
	maxMeasured = 4 << 20
	maxSpan     = 24 * time.Hour
)

// Measured is what a monitoring system knows of a service: its load over time and how
// long its requests take. Either may be missing.
type Measured struct {
	Load      []storm.Step
	Quantiles []storm.Quantile
	// Span is from the first row to the end of the last, which lasts as long as the row
	// before it; 0 with one row.
	Span storm.Duration
}

// columns are those of a file of measurements, in the order of messages, with their
// quantiles.
var columns = []column{{"time", 0}, {"rate", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}

type column struct {
	name string
	q    float64
}

// LoadMeasured reads a CSV file of measurements. Its first line names the columns, in any
// order: time, and some of the others. Times are RFC 3339 or in seconds, from any zero;
// rates are in requests a second, latencies in seconds. An empty latency, or NaN, is left
// out. The faults come all at once, as a [*strict.Error].
func LoadMeasured(path string) (*Measured, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMeasured+1))
	if err != nil {
		return nil, err
	}
	return ParseMeasured(path, data)
}

// ParseMeasured reads measurements from data; name is used in errors.
func ParseMeasured(name string, data []byte) (*Measured, error) {
	t := &table{Reader: strict.Reader{Name: name}}
	if len(data) > maxMeasured {
		t.FaultAt(strict.Position{File: name, Line: 1, Column: 1}, "the file is larger than %d MiB: take fewer rows", maxMeasured>>20)
		return nil, t.Err()
	}
	t.csv = csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	t.csv.TrimLeadingSpace = true
	if t.header() {
		t.body()
	}
	if t.Count() > 0 {
		return nil, t.Err()
	}
	m := &Measured{Load: t.load, Span: t.span()}
	for i, c := range columns {
		if c.q > 0 && t.at[i] >= 0 {
			m.Quantiles = append(m.Quantiles, storm.Quantile{Q: c.q, Time: storm.Duration(t.median(i) * 1e9)})
		}
	}
	return m, t.Err()
}

// Over returns s with m's load in the place of that of the first fleet, and m's times in
// the place of those of the first service. A scenario without a duration lasts as long
// as the load.
func (m *Measured) Over(s storm.Scenario) storm.Scenario {
	if len(s.Fleets) == 0 || len(s.Services) == 0 {
		return s // which is refused
	}
	if m.Load != nil {
		f := &s.Fleets[0]
		f.Load, f.Rate, f.Users, f.Think, f.Burst, f.BurstAt = m.Load, 0, 0, 0, 0, 0
		s.Duration = cmp.Or(s.Duration, m.Span)
	}
	if m.Quantiles != nil {
		v := &s.Services[0]
		v.Quantiles, v.Time, v.Concurrency, v.Law, v.CV = m.Quantiles, 0, 0, "", 0
	}
	return s
}

// table reads one file of measurements.
type table struct {
	strict.Reader
	csv *csv.Reader
	// at are the fields of the columns, -1 for one that is missing.
	at [6]int

	zero   string // the text of the first time
	times  []storm.Duration
	load   []storm.Step
	values [6][]weighted // of the latencies
}

// weighted is a latency in seconds, and the requests a second that had it.
type weighted struct{ value, weight float64 }

// fault records a fault at a field of the latest row.
func (t *table) fault(field int, format string, args ...any) {
	line, column := t.csv.FieldPos(field)
	t.FaultAt(strict.Position{File: t.Name, Line: line, Column: column}, format, args...)
}

// next returns the next row, or nil at the end of the file or of its sense.
func (t *table) next() []string {
	row, err := t.csv.Read()
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		t.FaultAt(strict.Position{File: t.Name, Line: e.Line, Column: e.Column}, "not CSV with the fields of its first line: %v", e.Err)
	}
	if err != nil {
		return nil
	}
	return row
}

// header reads the names of the columns, and reports whether rows can be read.
func (t *table) header() bool {
	row := t.next()
	if row == nil && t.Count() == 0 {
		t.FaultAt(strict.Position{File: t.Name, Line: 1, Column: 1}, "the file is empty: want a line %s, and a row for each time", names())
	}
	if row == nil {
		return false
	}
	t.at = [6]int{-1, -1, -1, -1, -1, -1}
	for field, text := range row {
		text = strings.TrimSpace(text)
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == text })
		switch {
		case i < 0:
			t.fault(field, "unknown column %s%s", strict.Quote(text), nearest.Hint(text, strings.Split(names(), ","), ": want some of "+names()))
		case t.at[i] >= 0:
			t.fault(field, "column %s appears twice", text)
		default:
			t.at[i] = field
		}
	}
	latencies := 0
	for i := range columns[2:] {
		if t.at[2+i] >= 0 {
			latencies++
		}
	}
	switch {
	case t.at[0] < 0:
		t.fault(0, "there is no column time")
	case latencies == 1:
		t.fault(0, "there is one column of latencies: want two or more of p50, p90, p95 and p99, or none")
	case t.at[1] < 0 && latencies == 0:
		t.fault(0, "there is no column besides time: want some of %s", names())
	}
	return t.Count() == 0
}

func names() string {
	var all []string
	for _, c := range columns {
		all = append(all, c.name)
	}
	return strings.Join(all, ",")
}

// body reads the rows.
func (t *table) body() {
	for row := t.next(); row != nil; row = t.next() {
		if len(t.times) == storm.MaxSteps {
			t.fault(0, "there are more than %d rows: take a longer step", storm.MaxSteps)
			return
		}
		at, ok := t.time(row[t.at[0]])
		if !ok {
			continue
		}
		t.times = append(t.times, at)
		weight := 1.0
		if field := t.at[1]; field >= 0 {
			if weight, ok = number(row[field], 0, storm.MaxRate); !ok {
				t.fault(field, "rate %s is not a number of requests a second from 0 to %g", strict.Quote(row[field]), float64(storm.MaxRate))
				continue
			}
			t.load = append(t.load, storm.Step{At: at, Rate: weight})
		}
		t.latencies(row, weight)
	}
	if len(t.times) == 0 && t.Count() == 0 {
		t.FaultAt(strict.Position{File: t.Name, Line: 2, Column: 1}, "there are no rows")
	}
}

// time returns how long after the first row a time is.
func (t *table) time(text string) (at storm.Duration, ok bool) {
	field := t.at[0]
	text = strings.TrimSpace(text)
	if t.zero == "" {
		t.zero = text
	}
	since, ok := between(t.zero, text)
	switch {
	case !ok && t.zero == text:
		t.zero = ""
		t.fault(field, "time %s is neither RFC 3339, such as 2006-01-02T15:04:05Z, nor a number of seconds", strict.Quote(text))
	case !ok:
		t.fault(field, "time %s is not of the form of the first, %s", strict.Quote(text), strict.Quote(t.zero))
	case len(t.times) > 0 && storm.Duration(since) <= t.times[len(t.times)-1]:
		t.fault(field, "time %s is not after that of the row before", strict.Quote(text))
		ok = false
	case since >= maxSpan:
		t.fault(field, "time %s is %v after the first: a run lasts at most %v, and times are in seconds", strict.Quote(text), since, maxSpan)
		ok = false
	}
	return storm.Duration(since), ok
}

// between returns the time from one to the other. What is longer than a year is a year.
func between(from, to string) (time.Duration, bool) {
	if a, err := time.Parse(time.RFC3339, from); err == nil {
		b, err := time.Parse(time.RFC3339, to)
		return b.Sub(a), err == nil
	}
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || math.IsNaN(b-a) {
		return 0, false
	}
	const year = 365 * 24 * 3600
	return time.Duration(max(-year, min(b-a, year)) * 1e9), true
}

// number reads a number in a range.
func number(text string, low, high float64) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil && v >= low && v <= high
}

// latencies reads those of a row, which rise with their quantiles.
func (t *table) latencies(row []string, weight float64) {
	last := 0.0
	for i, c := range columns {
		field := t.at[i]
		if c.q == 0 || field < 0 {
			continue
		}
		text := strings.TrimSpace(row[field])
		if text == "" || strings.EqualFold(text, "nan") {
			continue // no request, no latency
		}
		v, ok := number(text, 1e-9, 3600)
		switch {
		case !ok:
			t.fault(field, "%s %s is not a number of seconds above 0, up to 3600", c.name, strict.Quote(text))
		case v < last:
			t.fault(field, "%s %s is below a lower quantile of the same row, %v", c.name, text, last)
		default:
			last = v
			t.values[i] = append(t.values[i], weighted{v, weight})
		}
	}
}

// median returns the latency of column i that half of all requests had at most in their
// rows.
func (t *table) median(i int) float64 {
	all, total := t.values[i], 0.0
	for _, w := range all {
		total += w.weight
	}
	if total == 0 {
		t.FaultAt(strict.Position{File: t.Name, Line: 1, Column: 1}, "column %s has no value where there are requests: remove it", columns[i].name)
		return 0
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	sum := 0.0
	for _, w := range all {
		if sum += w.weight; sum >= total/2 {
			return w.value
		}
	}
	return all[len(all)-1].value
}

// span returns the time of all rows.
func (t *table) span() storm.Duration {
	n := len(t.times)
	if n < 2 {
		return 0
	}
	return min(2*t.times[n-1]-t.times[n-2], storm.Duration(maxSpan))
}
