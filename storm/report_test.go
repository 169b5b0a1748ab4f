package storm

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// wellFormed reads XML to its end.
func wellFormed(t *testing.T, name string, data []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func TestReports(t *testing.T) {
	s := withBudget(brownout(2000, 5))
	s.Name = `a <script>"name"</script> & more`
	r := mustRun(t, s)
	var text, table, picture, page bytes.Buffer
	for _, err := range []error{
		r.WriteText(&text), r.WriteCSV(&table), r.WriteSVG(&picture),
		WriteHTML(&page, s.Name, "about", []Compared{{Variants()[3], r}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"recovered", "multiplier", "=====", "█", "queue"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 601 || len(rows[0]) != 13 {
		t.Errorf("CSV: %d rows, %v", len(rows), err)
	}
	wellFormed(t, "SVG", picture.Bytes())
	if bytes.Contains(picture.Bytes(), []byte("<script")) || bytes.Contains(page.Bytes(), []byte("<script")) {
		t.Error("the scenario's name is not escaped")
	}
	// Self-contained: nothing is fetched, and links lead to the documents alone.
	links := regexp.MustCompile(`<a href="https://github\.com/forbear-go/forbear/blob/main/docs/`)
	for _, bad := range []string{"src=", "href=", "@import", "url("} {
		if strings.Contains(links.ReplaceAllString(page.String(), ""), bad) {
			t.Errorf("the report holds %q", bad)
		}
	}
	for _, word := range []string{"Multiplier", "Metastable", "Wasted work", "Budget used", "Self-inflicted", "the time of the fault"} {
		if !strings.Contains(page.String(), word) {
			t.Errorf("the report does not explain %q", word)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestGapsInCurvesStayGaps(t *testing.T) {
	r := mustRun(t, brownout(2000, 10)) // stuck: no good call, so no latency
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte("null")) {
		t.Error("a latency is given where no call ended well")
	}
	var picture bytes.Buffer
	if err := r.WriteSVG(&picture); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(picture.String(), "NaN") {
		t.Error("the picture holds NaN")
	}
}

func TestSweepReports(t *testing.T) {
	s := brownout(150, 5)
	s.Duration = seconds(40)
	calls := 0
	w, err := RunSweep(t.Context(), s, SweepBounds{LoadFrom: 0.6, LoadTo: 1.1, Loads: 6, Triggers: 5, Longest: seconds(10)}, Options{},
		func(done, of int) {
			if calls++; done != calls || done > of {
				t.Errorf("call %d of progress: %d of %d", calls, done, of)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	// Three runs of each cell, and nine more of those along the edge.
	runs, mixed := 0, 0
	for _, c := range slices.Concat(w.Cells...) {
		if runs += c.Runs; c.Stuck > 0 && c.Stuck < c.Runs {
			mixed++
			if c.Runs != edgeSeeds || !(c.Interval[0] < float64(c.Stuck)/edgeSeeds && float64(c.Stuck)/edgeSeeds < c.Interval[1]) {
				t.Errorf("%+v", c)
			}
		}
	}
	if calls != runs || runs <= 30*fewSeeds || runs >= 30*edgeSeeds || mixed == 0 {
		t.Errorf("%d calls of progress for %d runs of 30 cells, %d of which chance decides", calls, runs, mixed)
	}
	// More load and longer faults never make it better.
	bad := func(c Cell) bool { return c.Verdict == Metastable || c.Verdict == Overloaded }
	stuck := 0
	for i := range w.Cells {
		for j := range w.Cells[i] {
			if bad(w.Cells[i][j]) {
				stuck++
			}
			if i > 0 && bad(w.Cells[i-1][j]) && !bad(w.Cells[i][j]) || j > 0 && bad(w.Cells[i][j-1]) && !bad(w.Cells[i][j]) {
				t.Errorf("%.2fx %v is better than a neighbor with less", w.Loads[i], w.Triggers[j])
			}
		}
	}
	if stuck == 0 || stuck == len(slices.Concat(w.Cells...)) {
		t.Errorf("%d of 30 cells are stuck: the map shows nothing", stuck)
	}
	var text, table, picture bytes.Buffer
	for _, err := range []error{w.WriteText(&text), w.WriteCSV(&table), w.WriteSVG(&picture)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wellFormed(t, "map", picture.Bytes())
	t.Logf("\n%s", &text)
	for _, b := range []SweepBounds{{Loads: -1}, {Loads: 1000, Triggers: 1000}, {LoadFrom: 2, LoadTo: 1}, {Longest: -1}} {
		if _, err := RunSweep(t.Context(), s, b, Options{}, nil); err == nil {
			t.Errorf("bounds %+v were accepted", b)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, brownout(20_000, 10), Options{}); !errors.Is(err, context.Canceled) || r == nil || !r.Stopped {
		t.Error(err)
	}
	if _, err := Compare(ctx, brownout(100, 1), Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("compare: %v", err)
	}
}

// The stack of five layers side by side: only the last variant makes three of
// one, and with a budget in each layer the others come down as well.
func TestCompareLayers(t *testing.T) {
	s, _ := FindNamed("five-layers")
	all, err := Compare(t.Context(), s, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, c := range all {
		got[c.Variant.Name] = over(c.Result, c.Result.Services[4].Load, 5, 15) / 20
	}
	near(t, "no backoff", got["none"], 243, 10)
	near(t, "backoff", got["backoff"], 243, 10)
	if got["one-layer"] > 3.2 || got["budget"] > 5 {
		t.Errorf("deepest attempts a request: %v", got)
	}
	t.Log(got)
}

// The schema knows every field that the named scenarios use, and no struct tag
// is without its word of explanation.
func TestSchema(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, s := range Named() {
		data, _ := json.Marshal(s)
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		conform(t, s.Name, root, v)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Scenario](), reflect.TypeFor[Fleet](), reflect.TypeFor[Service](), reflect.TypeFor[Edge](),
		reflect.TypeFor[Fault](), reflect.TypeFor[Client](), reflect.TypeFor[Budget](), reflect.TypeFor[Throttle](),
		reflect.TypeFor[Baseline](), reflect.TypeFor[Bucket](),
	} {
		for f := range typ.Fields() {
			if f.Tag.Get("json") != "-" && f.Tag.Get("doc") == "" {
				t.Errorf("%s.%s has no doc tag", typ.Name(), f.Name)
			}
		}
	}
}

// conform checks the few words of JSON Schema that Schema uses.
func conform(t *testing.T, path string, schema map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, inner := range v {
			p, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s: the schema does not know %q", path, name)
				continue
			}
			conform(t, path+"."+name, p, inner)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				t.Errorf("%s: %s is required", path, name)
			}
		}
	case []any:
		for _, inner := range v {
			conform(t, path+"[]", schema["items"].(map[string]any), inner)
		}
	case string:
		if enum, ok := schema["enum"].([]any); ok {
			for _, e := range enum {
				if e == v {
					return
				}
			}
			t.Errorf("%s: %q is not one of %v", path, v, enum)
		}
		if schema["type"] != "string" {
			t.Errorf("%s: a string, where the schema has %v", path, schema["type"])
		}
	}
}

func TestDurationText(t *testing.T) {
	var d Duration
	for _, text := range []string{"", "5", "soon", "1 s"} {
		if d.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was read as %v", text, d)
		}
	}
	if err := d.UnmarshalText([]byte("1m30s")); err != nil || d.D() != 90*time.Second {
		t.Errorf("1m30s: %v, %v", d, err)
	}
}

func TestLeastTriggerNeedsAFault(t *testing.T) {
	s := brownout(100, 1)
	s.Faults = nil
	if _, err := LeastTrigger(t.Context(), s, Options{}, 0, nil); err == nil {
		t.Error("a scenario without a fault was accepted")
	}
}
