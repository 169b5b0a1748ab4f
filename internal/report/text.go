package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Text writes a finding a line, followed by its hint and the places that have
// to do with it, and then a line for each problem.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	shown := r.shown()
	for i, f := range shown {
		b.WriteString(Headline(&f))
		if f.Suppressed != "" {
			fmt.Fprintf(&b, " (suppressed: %s)", Line(f.Suppressed))
		}
		b.WriteByte('\n')
		// Of findings that say one thing about one file, the last has the advice.
		more := i+1 < len(shown) && shown[i+1].File == f.File && shown[i+1].ID == f.ID && shown[i+1].Hint == f.Hint && len(f.Related) == 0
		switch {
		case f.Hint != "" && f.URL != "": // each has it, since a reader may open the page from any of them
			fmt.Fprintf(&b, "  %s\n", Line(f.advice()))
		case f.Hint != "" && !more:
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
	return fmt.Sprintf("%s: %s: %s [%s%s%s]", Line(f.place().String()), f.Severity, Line(f.Message), f.ID, after(" ", f.Standard), after("; confidence ", f.Confidence))
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
// command of its own. Problems come last: the runner shows the first ten annotations
// of each level, and a finding has a line to be shown at.
func (r *Report) GitHub(w io.Writer) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	levels := map[Severity]string{Error: "error", Warning: "warning", Note: "notice"}
	var b strings.Builder
	for _, f := range r.Counting() {
		fmt.Fprintf(&b, "::%s file=%s", levels[f.Severity], property.Replace(f.File))
		if f.Line > 0 {
			fmt.Fprintf(&b, ",line=%d,col=%d", f.Line, max(f.Column, 1))
		}
		text := f.Message + after("\n", f.advice())
		fmt.Fprintf(&b, ",title=%s::%s\n", property.Replace(f.ID+after(" ", f.Standard)), data.Replace(text))
	}
	for _, p := range r.Problems {
		at := ""
		if p.File != "" {
			at = "file=" + property.Replace(p.File) + ","
		}
		if p.Line > 0 {
			at += fmt.Sprintf("line=%d,col=%d,", p.Line, max(p.Column, 1))
		}
		fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", levels[p.Severity()], at, property.Replace(p.Kind.Title()), data.Replace(p.Message))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
