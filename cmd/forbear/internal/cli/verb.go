package cli

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Verbs returns the verbs of a command that has any, in the order of its Usage,
// which is where they are written down: each alternative of "list | explain ID"
// begins with one. What an alternative has in brackets is about its flags.
func (c *Command) Verbs() (verbs []string) {
	depth := 0
	alternatives := strings.FieldsFunc(strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == '|' && depth == 0:
			return '\n'
		}
		return r
	}, c.Usage), func(r rune) bool { return r == '\n' })
	for _, a := range alternatives {
		first, _, _ := strings.Cut(strings.TrimSpace(a), " ")
		if first != "" && first[0] != '-' && strings.Trim(first, "abcdefghijklmnopqrstuvwxyz-") == "" {
			verbs = append(verbs, first)
		}
	}
	return verbs
}

// Knows refuses a verb that the command does not have, and names the nearest. A
// command without verbs takes any operand. Operands asks it; so does a command
// that takes its verb off with Verb.
func (c *Command) Knows(std *Streams, verb string) (code int, ok bool) {
	verbs := c.Verbs()
	if len(verbs) == 0 || slices.Contains(verbs, verb) {
		return ExitOK, true
	}
	want := strings.Join(verbs, ", ")
	if i := strings.LastIndex(want, ", "); i >= 0 {
		want = want[:i] + " or " + want[i+2:]
	}
	return std.Fail("%s: unknown verb %q%s (see forbear %s --help)", c.Name, verb, nearest.Hint(verb, verbs, ": want "+want), c.Name), false
}

// Verb takes the verb off the arguments. There is none where flags come first, such
// as --help.
func Verb(args []string) (verb string, rest []string) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[0], args[1:]
	}
	return "", args
}
