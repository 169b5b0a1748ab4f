package probe

import (
	"encoding/xml"
	"io"
)

// junit writes the report as JUnit's XML, which CI systems show: a case that does not hold
// is a failure, and one that could not be judged is skipped.
func (r *Report) junit(w io.Writer) error {
	type message struct {
		Text string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
		Out     string   `xml:"system-out,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     float64    `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "forbear probe", Tests: len(r.Cases), Failures: r.count(Fails), Skipped: r.count(NotJudged), Time: r.Took.Seconds()}
	for i := range r.Cases {
		f := &r.Cases[i]
		c := testcase{Class: f.Question, Name: f.ID + ": " + f.Title}
		switch f.Outcome {
		case Fails:
			c.Failure = &message{f.Why}
		case NotJudged:
			c.Skipped = &message{f.Why}
		default:
			c.Out = f.Why
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	return enc.Encode(suite)
}
