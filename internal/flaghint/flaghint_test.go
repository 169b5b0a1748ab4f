//forbear:plain nothing runs at once
package flaghint

import (
	"flag"
	"io"
	"testing"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"two dashes", []string{"--max-amplifcation", "4"}, ": did you mean --max-amplification?"},
		{"one dash", []string{"-max-amplifcation", "4"}, ": did you mean --max-amplification?"},
		{"inline value", []string{"--max_amplification=4"}, ": did you mean --max-amplification?"},
		{"behind a value", []string{"--why", "because", "--foce"}, ": did you mean --force?"},
		{"behind a switch", []string{"--force", "--wy", "x"}, ": did you mean --why?"},
		{"more than a letter", []string{"-oo", "json"}, ": did you mean -o?"},
		{"a letter", []string{"-p"}, ""},
		{"nothing near", []string{"--nonsense"}, ""},
		{"a bad value that looks like a flag", []string{"--max-amplification", "-o1"}, ""},
		{"no value", []string{"--why"}, ""},
		{"behind an operand", []string{"x", "--foce"}, ""},
		{"behind the end", []string{"--", "--foce"}, ""},
	} {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.Float64("max-amplification", 0, "")
		f.String("why", "", "")
		f.String("o", "", "")
		f.Bool("force", false, "")
		got := ""
		if err := f.Parse(tt.args); err != nil {
			got = Of(f, err)
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
