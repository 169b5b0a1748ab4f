package probe

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/advice"
)

// Advice is what to change in a client for a rule that it does not keep to.
type Advice struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// conclude adds what follows from the verdicts: the client's policy file, and what to change
// in it, where it is a client that is known.
func (r *Report) conclude() error {
	if r.classes == nil { // nothing was learned
		return nil
	}
	var b strings.Builder
	if err := r.policy(&b); err != nil {
		return err
	}
	r.Policy = b.String()
	c, ok, err := advice.For(r.Agent)
	if !ok || err != nil {
		return err
	}
	for _, rule := range r.broken() {
		if text := c.Rules[rule]; text != "" {
			r.Advice = append(r.Advice, Advice{rule, text})
		}
	}
	if len(r.Advice) > 0 {
		r.AdviceClient, r.AdviceSources = c.Name, c.Sources
	}
	return nil
}

// broken returns the rules that the client does not keep to, in their order.
func (r *Report) broken() (rules []string) {
	for i := range r.Cases {
		if f := &r.Cases[i]; f.Outcome == Fails && !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	number := func(rule string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(rule, "R-"))
		return n
	}
	slices.SortFunc(rules, func(a, b string) int { return number(a) - number(b) })
	return rules
}

// adviseText writes the advice for people.
func (r *Report) adviseText(w io.Writer) {
	if len(r.Advice) == 0 {
		return
	}
	fmt.Fprintf(w, "\nWhat to change (%s)\n", cli.Printable(r.AdviceClient))
	for _, a := range r.Advice {
		fmt.Fprintf(w, "  %s: %s\n", a.Rule, a.Text)
	}
	fmt.Fprintf(w, "  Source: %s\n", strings.Join(r.AdviceSources, ", "))
}

// adviseHTML is the advice as a part of the page.
func (r *Report) adviseHTML() string {
	if len(r.Advice) == 0 {
		return ""
	}
	var b strings.Builder
	e := html.EscapeString
	fmt.Fprintf(&b, "<h2>What to change (%s)</h2><table>\n", e(r.AdviceClient))
	for _, a := range r.Advice {
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%s</td></tr>\n", e(a.Rule), code.ReplaceAllString(e(a.Text), "<code>$1</code>"))
	}
	b.WriteString("</table>\n<p class=\"soft\">Source:")
	for _, s := range r.AdviceSources {
		fmt.Fprintf(&b, " <a href=\"%s\">%[1]s</a>", e(s))
	}
	b.WriteString("</p>\n")
	return b.String()
}

// code is what stands between two backquotes.
var code = regexp.MustCompile("`([^`]+)`")
