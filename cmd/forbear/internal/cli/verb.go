package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
)

var (
	bracketed = regexp.MustCompile(`\[[^\[\]]*\]`)
	verbName  = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// Verbs returns the verbs of a command that has any, in the order of its Usage,
// which is where they are written down: each alternative of "list | explain ID"
// begins with one. What an alternative has in brackets is about its flags.
func (c *Command) Verbs() (verbs []string) {
	for alternative := range strings.SplitSeq(bracketed.ReplaceAllString(c.Usage, ""), "|") {
		if first, _, _ := strings.Cut(strings.TrimSpace(alternative), " "); verbName.MatchString(first) {
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
	return std.Fail("%s: unknown verb %q%s (see forbear %s --help)", c.Name, verb, nearest.Hint(verb, verbs, ": want "+OneOf(verbs)), c.Name), false
}

// OneOf lists words as alternatives: "list, show or settle".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Verb takes the verb off the arguments. There is none where flags come first, such
// as --help.
func Verb(args []string) (verb string, rest []string) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[0], args[1:]
	}
	return "", args
}
