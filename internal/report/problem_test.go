//forbear:plain nothing runs at once
package report

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/sarifcheck"
)

// troubled is a run over three files: one is judged, one was named and is
// faulty, and one was met in a folder.
func troubled() *Report {
	return &Report{
		Tool: "check", Version: "1.2.3", Files: []string{"a.yaml", "b.yaml"},
		Problems: []Problem{
			{Kind: Faulty, File: "b.yaml", Line: 2, Column: 7, Message: "not\nYAML: 100%", Fatal: true},
			{Kind: Unrecognized, File: "dir/c d.yaml", Message: "no retry settings"},
		},
	}
}

// TestProblemsInText has a line for each problem behind the findings.
func TestProblemsInText(t *testing.T) {
	r := troubled()
	r.Findings = []Finding{{ID: "FC1", Severity: Error, File: "a.yaml", Line: 1, Message: "found"}}
	const want = `a.yaml:1: error: found [FC1]
b.yaml:2:7: faulty: not YAML: 100%
dir/c d.yaml: not recognized: no retry settings (passed over)
`
	if got := write(t, r.Text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestProblemsInGitHub makes annotations of them, and escapes their texts.
func TestProblemsInGitHub(t *testing.T) {
	const want = `::error file=b.yaml,line=2,col=7,title=faulty::not%0AYAML: 100%25
::notice file=dir/c d.yaml,title=not recognized::no retry settings
`
	if got := write(t, troubled().GitHub); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestProblemsInSARIF makes notifications of them. Only a fatal one makes the run a
// failed one.
func TestProblemsInSARIF(t *testing.T) {
	type notification struct {
		Descriptor struct {
			ID    string
			Index int
		}
		Level     string
		Message   struct{ Text string }
		Locations []struct {
			PhysicalLocation struct {
				ArtifactLocation struct{ URI string }
				Region           struct{ StartLine, StartColumn int }
			}
		}
	}
	read := func(r *Report) (ok bool, list []notification) {
		data := []byte(write(t, r.SARIF))
		if err := sarifcheck.Check(data); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
		var log struct {
			Runs []struct {
				Invocations []struct {
					ExecutionSuccessful        bool
					ToolExecutionNotifications []notification
				}
			}
		}
		if err := json.Unmarshal(data, &log); err != nil {
			t.Fatal(err)
		}
		return log.Runs[0].Invocations[0].ExecutionSuccessful, log.Runs[0].Invocations[0].ToolExecutionNotifications
	}
	r := troubled()
	ok, got := read(r)
	if ok || len(got) != 2 {
		t.Fatalf("successful %v with %+v, want a failed run with two notifications", ok, got)
	}
	if n := got[0]; n.Level != "error" || n.Descriptor.ID != "faulty" || n.Message.Text != "not YAML: 100%" ||
		n.Locations[0].PhysicalLocation.ArtifactLocation.URI != "b.yaml" || n.Locations[0].PhysicalLocation.Region.StartColumn != 7 {
		t.Errorf("got %+v", n)
	}
	if n := got[1]; n.Level != "note" || n.Descriptor.ID != "unrecognized" || n.Locations[0].PhysicalLocation.ArtifactLocation.URI != "dir/c%20d.yaml" {
		t.Errorf("got %+v", n)
	}
	r.Problems = r.Problems[1:]
	if ok, got := read(r); !ok || len(got) != 1 {
		t.Errorf("successful %v with %+v, want a good run with one notification", ok, got)
	}
	r.Problems = []Problem{{Kind: Unread, Message: "no file at all", Fatal: true}}
	if ok, got := read(r); ok || len(got[0].Locations) != 0 {
		t.Errorf("successful %v with %+v, want a problem of no file to have no place", ok, got)
	}
}

// TestProblemsInJUnit has an error, which fails the job, or a skipped case, in the
// suite of the file. A file that was not judged has no passed case.
func TestProblemsInJUnit(t *testing.T) {
	type note struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
	}
	type suite struct {
		Name    string `xml:"name,attr"`
		Tests   int    `xml:"tests,attr"`
		Errors  int    `xml:"errors,attr"`
		Skipped int    `xml:"skipped,attr"`
		Cases   []struct {
			Name    string `xml:"name,attr"`
			Error   *note  `xml:"error"`
			Skipped *note  `xml:"skipped"`
		} `xml:"testcase"`
	}
	var doc struct {
		Suites []suite `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(write(t, troubled().JUnit)), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Suites) != 3 {
		t.Fatalf("got %d suites, want one for each file", len(doc.Suites))
	}
	if s := doc.Suites[0]; s.Tests != 1 || s.Errors != 0 || s.Cases[0].Name != "no findings" {
		t.Errorf("the judged file: got %+v", s)
	}
	if s := doc.Suites[1]; s.Name != "b.yaml" || s.Tests != 1 || s.Errors != 1 || s.Cases[0].Error == nil ||
		s.Cases[0].Error.Type != "faulty" || s.Cases[0].Error.Message != "not YAML: 100%" || s.Cases[0].Name != "faulty at 2:7" {
		t.Errorf("the faulty file: got %+v", s)
	}
	if s := doc.Suites[2]; s.Name != "dir/c d.yaml" || s.Tests != 1 || s.Errors != 0 || s.Skipped != 1 || s.Cases[0].Skipped == nil ||
		s.Cases[0].Skipped.Message != "not recognized: no retry settings" {
		t.Errorf("the file that was met: got %+v", s)
	}
}

// TestProblemsInJSON reads back as it was, and lists are never null.
func TestProblemsInJSON(t *testing.T) {
	var got struct {
		Counts   map[string]int
		Problems []Problem
	}
	r := troubled()
	text := write(t, r.JSON)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Problems, r.Problems) || got.Counts["problem"] != 2 || got.Counts["fatal_problem"] != 1 {
		t.Errorf("got %+v", got)
	}
	for _, want := range []string{`"kind": "faulty"`, `"fatal": false`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing from\n%s", want, text)
		}
	}
	if text := write(t, (&Report{Tool: "lint"}).JSON); strings.Contains(text, "null") {
		t.Errorf("a list is null:\n%s", text)
	}
}

// TestIncomplete asks whether the run may pass.
func TestIncomplete(t *testing.T) {
	r := troubled()
	if !r.Incomplete() {
		t.Error("a fatal problem was passed over")
	}
	r.Problems = r.Problems[1:]
	if r.Incomplete() {
		t.Error("a file that was met and passed over keeps the run from passing")
	}
}

// TestProblemsAreInEveryFormat holds formats of the future to it.
func TestProblemsAreInEveryFormat(t *testing.T) {
	for _, format := range Formats() {
		got := write(t, func(w io.Writer) error { return troubled().Write(w, format) })
		for _, want := range []string{"YAML: 100%", "no retry settings"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing from\n%s", format, want, got)
			}
		}
	}
}

// A baseline knows a problem as often as it was there.
func TestBaselineOfProblems(t *testing.T) {
	r := troubled()
	known, err := ReadBaseline([]byte(write(t, r.WriteBaseline)))
	if err != nil {
		t.Fatal(err)
	}
	again := troubled()
	again.Problems = append(again.Problems, again.Problems[0], Problem{Kind: Faulty, File: "b.yaml", Message: "another", Fatal: true})
	known.Apply(again)
	var fatal []bool
	for _, p := range again.Problems {
		fatal = append(fatal, p.Fatal)
	}
	if want := []bool{false, false, true, true}; !slices.Equal(fatal, want) || !again.Problems[0].Known || again.Problems[1].Known {
		t.Errorf("fatal are %v, want %v: %+v", fatal, want, again.Problems)
	}
}
