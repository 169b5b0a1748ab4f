package cli

import (
	"context"
	"strings"
	"testing"
)

// A value that a flag cannot take is refused with what it takes.
func TestFlagErrors(t *testing.T) {
	c := &Command{Name: "try"}
	c.Run = func(_ context.Context, std *Streams, args []string) int {
		f := c.Flags()
		f.Int("status", 0, "")
		f.Float64("rate", 0, "")
		f.Duration("timeout", 0, "")
		f.Bool("all", false, "")
		f.String("o", "", "")
		code, _ := c.Parse(std, f, args, 0)
		return code
	}
	for want, args := range map[string]string{
		`invalid value "abc" for --status: want a whole number`:                      "--status abc",
		`invalid value "a:b" for --rate: want a number`:                              "-rate a:b",
		`invalid value "5" for --timeout: want a duration such as 500ms, 30s or 24h`: "--timeout=5",
		`invalid value "maybe" for --all: want true or false`:                        "--all=maybe",
		`unknown flag --statu: did you mean --status? (see forbear try --help)`:      "--statu 5",
		`unknown flag -p (see forbear try --help)`:                                   "-p",
		`--status needs a value`:                                                     "--status",
		`-o needs a value`:                                                           "-o",
	} {
		var out strings.Builder
		if code := c.Run(t.Context(), &Streams{Out: &out, Err: &out}, strings.Fields(args)); code != ExitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d %s, want %q", args, code, out.String(), want)
		}
	}
}
