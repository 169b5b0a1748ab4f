package probe

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/law"
)

// Report is what a probe has found.
type Report struct {
	Command []string `json:"command"`
	// Protocol is http or grpc.
	Protocol string        `json:"protocol"`
	Agent    string        `json:"user_agent"`
	Took     time.Duration `json:"took_ns"`
	Cases    []Finding     `json:"cases"`
	Law      *law.Found    `json:"law,omitempty"`    // of the waits, where there were enough
	Output   string        `json:"output,omitempty"` // of a client that could not be judged
	// Policy is the policy file that says what was seen.
	Policy string `json:"policy,omitempty"`
	// Advice is for the rules that do not hold, where the client is known by its name.
	Advice        []Advice `json:"advice,omitempty"`
	AdviceClient  string   `json:"advice_client,omitempty"`
	AdviceSources []string `json:"advice_sources,omitempty"`

	waits law.Sample
	// What a policy file says.
	retries int
	attempt time.Duration
	classes map[string]string
}

// Finding is a case with its verdict.
type Finding struct {
	ID       string `json:"id"`
	Rule     string `json:"rule,omitempty"`
	Question string `json:"question"`
	Title    string `json:"title"`
	Verdict
	Runs []run `json:"runs,omitempty"`

	question int
	group    string
}

func (r *Report) add(c *Case, v Verdict, runs []run) {
	f := Finding{ID: c.ID, Rule: c.Rule, Question: questions[c.question], Title: c.Title, Verdict: v, question: c.question, group: c.group}
	if c.of == "" {
		f.Runs = runs
	}
	r.Cases = append(r.Cases, f)
}

// count returns how many cases have an outcome.
func (r *Report) count(outcome string) (n int) {
	for i := range r.Cases {
		if r.Cases[i].Outcome == outcome {
			n++
		}
	}
	return n
}

func (r *Report) exit() int {
	switch {
	case r.count(Fails) > 0:
		return cli.ExitFound
	case r.count(Holds) == 0:
		return cli.ExitUsage
	}
	return cli.ExitOK
}

// formats are those of a report.
var formats = []string{"text", "json", "junit", "policy"}

// write writes the report in a format, and as a page to a file, where that is named.
func (r *Report) write(w io.Writer, format, page string) error {
	if err := r.conclude(); err != nil {
		return err
	}
	if page != "" {
		var b bytes.Buffer
		if err := cmp.Or(r.html(&b), os.WriteFile(page, b.Bytes(), 0o644)); err != nil {
			return err
		}
	}
	switch format {
	case "json":
		return cli.WriteJSON(w, r)
	case "junit":
		return r.junit(w)
	case "policy":
		return r.policy(w)
	}
	r.text(w)
	return nil
}

// text writes the report for people.
func (r *Report) text(w io.Writer) {
	fmt.Fprintf(w, "%s\n", strings.Join(r.Command, " "))
	if r.Agent != "" {
		fmt.Fprintf(w, "User-Agent: %s\n", cli.Printable(r.Agent))
	}
	for q, words := range questions {
		heading := words
		groups := map[string]bool{}
		for i := range r.Cases {
			f := &r.Cases[i]
			if f.question != q || f.ID == healthy && f.Outcome == Told {
				continue
			}
			if heading != "" {
				fmt.Fprintf(w, "\n%s\n", heading)
				heading = ""
			}
			if f.group == "" {
				fmt.Fprintf(w, "  %-10s  %s: %s%s\n", f.Outcome, f.Title, f.Why, rule(f))
			} else if !groups[f.group+f.Outcome] {
				groups[f.group+f.Outcome] = true
				r.line(w, f)
			}
		}
	}
	r.adviseText(w)
	if r.Output != "" {
		fmt.Fprintf(w, "\nIts output:\n%s\n", cli.Printable(r.Output))
	}
	fmt.Fprintf(w, "\n%d hold, %d do not, %d could not be judged, %d are outside the rules (%s)\n", r.count(Holds), r.count(Fails), r.count(NotJudged), r.count(Told), short(r.Took))
}

// toGET is what the titles of a group end in, with HTTP.
const toGET = " to a GET"

// line writes the cases of a group that have the same outcome.
func (r *Report) line(w io.Writer, first *Finding) {
	var titles []string
	for i := range r.Cases {
		if f := &r.Cases[i]; f.group == first.group && f.Outcome == first.Outcome {
			titles = append(titles, strings.TrimSuffix(f.Title, toGET))
		}
	}
	to := ""
	if strings.HasSuffix(first.Title, toGET) {
		to = toGET
	}
	fmt.Fprintf(w, "  %-10s  %s%s: %s%s\n", first.Outcome, strings.Join(titles, " "), to, first.Why, rule(first))
}

func rule(f *Finding) string {
	if f.Rule == "" || f.Outcome != Fails {
		return ""
	}
	return " (" + f.Rule + ")"
}
