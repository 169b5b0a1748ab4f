package strict

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/nearest"
)

// Scalar returns the text of a value that is no mapping, no list and not
// empty. Tags are refused: they would let a file change the type of a value
// against the schema.
func (r *Reader) Scalar(n *yaml.Node, what, want string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "":
		r.Fault(n, "%s is %s: want %s", what, Describe(n), want)
	case n.Style&yaml.TaggedStyle != 0:
		r.Fault(n, "%s has the tag %s: tags are not supported", what, n.Tag)
	default:
		return n.Value, true
	}
	return "", false
}

// Text reads a line of at most 256 bytes without control characters: it may
// end up in a log line or a terminal.
func (r *Reader) Text(n *yaml.Node, what string, into *string) {
	const most = 256
	s, ok := r.Scalar(n, what, "text")
	switch {
	case !ok:
	case len(s) > most:
		r.Fault(n, "%s is longer than %d bytes", what, most)
	case strings.ContainsFunc(s, label.Control):
		r.Fault(n, "%s holds control characters", what)
	default:
		*into = s
	}
}

// Flag reads true or false. yes and on are not accepted: YAML 1.1 takes them
// for truth values and YAML 1.2 for text, so that tools disagree.
func (r *Reader) Flag(n *yaml.Node, what string, into *bool) {
	s, ok := r.Scalar(n, what, "true or false")
	switch {
	case !ok:
	case s == "true" || s == "false":
		*into = s == "true"
	default:
		r.Fault(n, "%s is %s: want true or false", what, Quote(s))
	}
}

// Choice reads one of a few words and returns its index. Callers rely on the
// order in which they pass the words.
func (r *Reader) Choice(n *yaml.Node, what string, words ...string) (int, bool) {
	want := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	s, ok := r.Scalar(n, what, want)
	if !ok {
		return 0, false
	}
	if i := slices.Index(words, s); i >= 0 {
		return i, true
	}
	hint := ": want " + want
	if s != "no" { // it means off, and on is the word that is nearest
		hint = nearest.Hint(s, words, hint)
	}
	r.Fault(n, "%s is %s%s", what, Quote(s), hint)
	return 0, false
}
