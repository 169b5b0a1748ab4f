package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Text writes a finding a line, followed by its hint, where it is the first that has it, and
// the places that have to do with it, and then a line for each problem.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	given := map[string]bool{}
	for _, f := range r.shown() {
		b.WriteString(Headline(&f))
		if f.Suppressed != "" {
			fmt.Fprintf(&b, " (suppressed: %s)", Line(f.Suppressed))
		}
		b.WriteByte('\n')
		switch {
		case f.Hint != "" && f.URL != "": // each has it, since a reader may open the page from any of them
			fmt.Fprintf(&b, "  %s\n", Line(f.advice()))
		case f.Hint != "" && !given[f.ID+f.Hint]:
			given[f.ID+f.Hint] = true
			fmt.Fprintf(&b, "    %s\n", Line(f.Hint))
		}
		for _, p := range f.Related {
			fmt.Fprintf(&b, "    %s: %s\n", Line(p.String()), Line(p.Message))
		}
	}
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Headline is the line of a finding in the text format.
func Headline(f *Finding) string {
	return fmt.Sprintf("%s: %s: %s [%s%s%s]", Line(f.place().String()), f.Severity, Line(f.Message), f.ID, after(" ", f.rule()), after("; confidence ", f.Confidence))
}

// rule is the rule of the standard on retries that a finding follows from, or "". The
// numbers of companion standards say nothing to most readers; JSON and SARIF have them.
func (f *Finding) rule() string {
	if strings.HasPrefix(f.Standard, "INTG-") {
		return ""
	}
	return f.Standard
}

// after returns s behind its separator, or nothing at all when s is empty.
func after(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

// Line keeps a message or a name on one line, without control characters. Messages quote
// names from users' files: a line feed or an escape sequence in one could forge a finding
// or drive the terminal, and a mark of direction could show it as something else.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// GitHub writes workflow commands, which become annotations. Values are escaped as
// the runner demands. Without that a message with a line feed could start a workflow
// command of its own. The gravest come first, since the runner shows the first ten
// annotations of each level; a finding comes before a problem, since it has a line.
func (r *Report) GitHub(w io.Writer) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	levels := map[Severity]string{Error: "error", Warning: "warning", Note: "notice"}
	var lines [Error + 1]strings.Builder
	annotate := func(s Severity, at Place, title, text string) {
		b := &lines[min(s, Error)]
		fmt.Fprintf(b, "::%s ", levels[min(s, Error)])
		if at.File != "" {
			fmt.Fprintf(b, "file=%s,", property.Replace(at.File))
		}
		if at.Line > 0 {
			fmt.Fprintf(b, "line=%d,col=%d,", at.Line, max(at.Column, 1))
		}
		fmt.Fprintf(b, "title=%s::%s\n", property.Replace(title), data.Replace(text))
	}
	for _, f := range r.Counting() {
		annotate(f.Severity, f.place(), f.ID+after(" ", f.rule()), f.Message+after("\n", f.advice()))
	}
	for _, p := range r.Problems {
		annotate(p.Severity(), p.Place(), p.Kind.Title(), p.Message)
	}
	for _, s := range []Severity{Error, Warning, Note} {
		if _, err := io.WriteString(w, lines[s].String()); err != nil {
			return err
		}
	}
	return nil
}
