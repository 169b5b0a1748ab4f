package report

import (
	"fmt"
	"io"
)

// Output is a format and its destination: "" is standard output. One run may write
// several: text for the log of a pipeline, SARIF for the code host.
type Output struct{ Format, File string }

// WriteAll writes each output; in writes a format. Without any, text goes to standard
// output. It ends at the first failure, since a missing report must fail the run.
func WriteAll(outputs []Output, stdout io.Writer, in func(w io.Writer, o Output) error) error {
	if len(outputs) == 0 {
		outputs = []Output{{"text", ""}}
	}
	for _, o := range outputs {
		var err error
		if o.File == "" {
			err = in(stdout, o)
		} else {
			err = ToFile(o.File, func(w io.Writer) error { return in(w, o) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Plural is a count with its noun. Every noun here takes an s.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
