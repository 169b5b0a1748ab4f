package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
)

// The types below are the subset of JUnit's XML that the common CI systems read. JUnit has no schema of record, so nothing beyond that subset is written.
type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []junitSuite
}

type junitSuite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Cases    []junitCase
}

type junitCase struct {
	XMLName xml.Name      `xml:"testcase"`
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Error   *junitFailure `xml:"error,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

// junitFailure makes a case fail. Message is the headline that a CI system shows,
// Text the detail behind it.
type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitSkipped makes a case one that did not run. Some CI systems show its message.
type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes a suite for each file. Errors are failures; what is less is reported
// in the output of a passed case. A fatal problem is an error, which fails the job as
// well and says that nothing was judged; any other one is a skipped case. A file
// without either has one passed case, and so has a run without any file. An empty
// suite would not do: some CI systems take a file without cases for a broken run.
func (r *Report) JUnit(w io.Writer) error {
	var doc junitSuites
	names, found, problems := r.byFile()
	for _, name := range names {
		s := junitSuite{Name: name}
		alike := map[string]int{}
		for _, f := range found[name] {
			c := junitCase{Class: name, Name: f.ID + after(" ", cmp.Or(f.Subject, f.Function))}
			// CI systems know a case by its name, from run to run, so that it has no line.
			if alike[c.Name]++; alike[c.Name] > 1 {
				c.Name += fmt.Sprintf(" (%d)", alike[c.Name])
			}
			text := fmt.Sprintf("%s: %s%s", Line(f.place().String()), Line(f.Message), after("\n", f.advice()))
			if f.Severity == Error {
				c.Failure = &junitFailure{f.ID + after(" ", f.rule()), Line(f.Message), text}
				s.Failures++
			} else {
				c.Out = f.Severity.String() + ": " + text
			}
			s.Cases = append(s.Cases, c)
		}
		for _, p := range problems[name] {
			s.Cases = append(s.Cases, p.junit(name))
			if p.Fatal {
				s.Errors++
			} else {
				s.Skipped++
			}
		}
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Class: name, Name: "no findings"}}
		}
		s.Tests = len(s.Cases)
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// byFile sorts the findings that count, and the problems, by their files, which are
// those that were judged, and then the others. Files without either come too: their
// passed cases show that they were judged at all. What has no file stands under the
// name of the whole run.
func (r *Report) byFile() (names []string, found map[string][]Finding, problems map[string][]Problem) {
	names, found, problems = slices.Clone(r.Files), map[string][]Finding{}, map[string][]Problem{}
	whole, listed := cmp.Or(r.About, r.Tool), map[string]bool{}
	for _, name := range names {
		listed[name] = true
	}
	list := func(name string) string {
		name = cmp.Or(name, whole)
		if !listed[name] {
			listed[name] = true
			names = append(names, name)
		}
		return name
	}
	for _, f := range r.Counting() {
		name := list(f.File)
		found[name] = append(found[name], f)
	}
	for _, p := range r.Problems {
		name := list(p.File)
		problems[name] = append(problems[name], p)
	}
	if len(names) == 0 {
		names = []string{whole}
	}
	return names, found, problems
}
