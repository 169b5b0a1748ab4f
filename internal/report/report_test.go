package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/sarifcheck"
)

// sample has everything that a finding can have.
func sample() *Report {
	return &Report{
		Tool: "lint", Version: "1.2.3", About: "example.com/m", Root: "file:///src/m/",
		Rules: []Rule{
			{ID: "FB1", Name: "some-rule", Standard: "R-1", Severity: Error, Summary: "a rule", Why: "because", Fix: "do it", URL: "https://example.com/#fb1"},
			{ID: "FB2", Name: "Other", Severity: Note, Summary: "another", Why: "too", Bad: "bad()", Good: "good()"},
		},
		Findings: []Finding{
			{
				ID: "FB2", Severity: Note, File: "dir with space/ä.go", Line: 2, Column: 8, EndLine: 2, EndColumn: 11,
				Package: "m", Function: "F", Confidence: "low", Message: "found\nhere", Identity: "x",
				Related: []Place{{File: "b.go", Line: 1, Column: 1, Message: "the call"}, {File: "b.go", Line: 2, Column: 1, Message: "the wait"}},
				Fixes: []Fix{{Message: "use it", Edits: []Edit{
					{Place: Place{File: "b.go", Line: 1, Column: 1, EndLine: 1, EndColumn: 3}, Start: 0, End: 2, NewText: "x"},
					{Place: Place{File: "b.go", Line: 2, Column: 1, EndLine: 2, EndColumn: 1}, Start: 5, End: 5, NewText: "y"},
				}}},
			},
			{ID: "FB1", Standard: "R-1", Severity: Error, File: "/abs/c.yaml", Message: "100%: a, b", Hint: "mend it", URL: "https://example.com/#fb1"},
			{ID: "FB1", Standard: "R-1", Severity: Error, File: "d.go", Line: 3, Message: "quiet", Suppressed: "on purpose", InSource: true},
		},
		Source: func(string) ([]byte, error) { return []byte("package\n\"ä𝄞\" xyz\n"), nil },
	}
}

func write(t *testing.T, f func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	const want = `dir with space/ä.go:2:8: note: found here [FB2; confidence low]
    b.go:1:1: the call
    b.go:2:1: the wait
/abs/c.yaml: error: 100%: a, b [FB1 R-1]
  fix: mend it: https://example.com/#fb1
`
	r := sample()
	if got := write(t, r.Text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.ShowSuppressed = true
	if got := write(t, r.Text); !strings.HasSuffix(got, "d.go:3: error: quiet [FB1 R-1] (suppressed: on purpose)\n") {
		t.Errorf("got\n%s\nwant the suppressed one too", got)
	}
}

// SARIF is what the standard asks for, with every part of a finding.
func TestSARIF(t *testing.T) {
	r := sample()
	r.ShowSuppressed = true
	(&Baseline{}).Apply(r)
	got := write(t, r.SARIF)
	if err := sarifcheck.Check([]byte(got)); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	for _, want := range []string{
		`"uri": "dir%20with%20space/%C3%A4.go"`, `"uri": "file:///abs/c.yaml"`, `"uriBaseId": "%SRCROOT%"`,
		`"startColumn": 5`, `"endColumn": 8`, // ä takes two bytes and one unit, 𝄞 four and two
		`"columnKind": "utf16CodeUnits"`, `"kind": "inSource"`, `"justification": "on purpose"`, `"id": "forbear/lint/example.com/m"`,
		`"helpUri": "https://example.com/#fb1"`, `"name": "SomeRule"`, `"baselineState": "new"`, `"insertedContent"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing from\n%s", want, got)
		}
	}
	if strings.Contains(got, "primaryLocationLineHash") {
		t.Error("GitHub's own fingerprint is GitHub's to compute")
	}
	empty := &Report{Tool: "check"}
	if err := sarifcheck.Check([]byte(write(t, empty.SARIF))); err != nil {
		t.Errorf("nothing found: %v", err)
	}
}

func TestGitHub(t *testing.T) {
	const want = `::error file=/abs/c.yaml,title=FB1 R-1::100%25: a, b%0Afix: mend it: https://example.com/#fb1
::notice file=dir with space/ä.go,line=2,col=8,title=FB2::found%0Ahere
`
	if got := write(t, sample().GitHub); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJUnit(t *testing.T) {
	type suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
	}
	read := func(r *Report) []suite {
		var doc struct {
			Suites []suite `xml:"testsuite"`
		}
		if err := xml.Unmarshal([]byte(write(t, r.JUnit)), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.Suites
	}
	r := sample()
	r.Files = []string{"clean.yaml"}
	got := read(r)
	if len(got) != 3 || got[0] != (suite{"clean.yaml", 1, 0}) || got[1].Failures != 0 || got[2] != (suite{"/abs/c.yaml", 1, 1}) {
		t.Errorf("got %+v, want the judged file, a note and a failure", got)
	}
	if got := read(&Report{Tool: "lint", About: "m"}); len(got) != 1 || got[0] != (suite{"m", 1, 0}) {
		t.Errorf("nothing found: got %+v, want one passed case", got)
	}
}

// A baseline of our own form, or a SARIF file, knows the findings again after
// their lines have moved, and no others.
func TestBaseline(t *testing.T) {
	r := sample()
	for _, form := range []func(io.Writer) error{r.WriteBaseline, r.SARIF} {
		b, err := ReadBaseline([]byte(write(t, form)))
		if err != nil {
			t.Fatal(err)
		}
		later := sample()
		for i := range later.Findings {
			later.Findings[i].Line += 100
		}
		later.Findings = append(later.Findings, Finding{ID: "FB1", Severity: Error, File: "new.go", Message: "new"})
		b.Apply(later)
		if got := later.Counting(); len(got) != 1 || got[0].File != "new.go" || got[0].Baseline != "new" {
			t.Errorf("got %+v, want the new one alone", got)
		}
		if later.Findings[0].Baseline != "unchanged" {
			t.Errorf("got %q, want unchanged", later.Findings[0].Baseline)
		}
	}
	for _, bad := range []string{"", "[]", `{"schema":"other"}`} {
		if _, err := ReadBaseline([]byte(bad)); err == nil {
			t.Errorf("%q is no baseline", bad)
		}
	}
}

// JSON reads back as it was.
func TestJSON(t *testing.T) {
	var got struct {
		Schema   string
		Counts   map[string]int
		Findings []Finding
	}
	if err := json.Unmarshal([]byte(write(t, sample().JSON)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != JSONVersion || got.Counts["error"] != 1 || got.Counts["suppressed"] != 1 || len(got.Findings) != 3 || got.Findings[0].Fixes[0].Edits[1].NewText != "y" {
		t.Errorf("got %+v", got)
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := sample().Write(io.Discard, "yaml"); err == nil || !strings.Contains(err.Error(), "want text, json, sarif, github, junit") {
		t.Errorf("got %v", err)
	}
}

// TestJUnitNames: two findings of one rule in one function are two cases.
func TestJUnitNames(t *testing.T) {
	r := &Report{Tool: "lint", Findings: []Finding{
		{ID: "FB1001", File: "m.go", Line: 3, Function: "F", Severity: Error, Message: "a"},
		{ID: "FB1001", File: "m.go", Line: 9, Function: "F", Severity: Error, Message: "b"},
		{ID: "FB1001", File: "n.go", Line: 9, Function: "F", Severity: Error, Message: "c"},
	}}
	var b strings.Builder
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, `name="FB1001 F"`) != 2 || strings.Count(got, `classname="m.go" name="FB1001 F (2)"`) != 1 {
		t.Errorf("got %s", got)
	}
}

// TestFileURI: the letter of a drive is no host.
func TestFileURI(t *testing.T) {
	for name, want := range map[string]string{"/a b/c": "file:///a%20b/c", "C:/a/c": "file:///C:/a/c"} {
		if got := FileURI(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
