package policyfile

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/nearest"
)

// scalar returns the text of a value that is no mapping, no list and not
// empty. Tags are refused: they would let a file change the type of a value
// against the schema.
func (d *decoder) scalar(n *yaml.Node, what, want string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "":
		d.fault(n, "", "%s is %s: want %s", what, describe(n), want)
	case n.Style&yaml.TaggedStyle != 0:
		d.fault(n, "", "%s has the tag %s: tags are not read", what, n.Tag)
	default:
		return n.Value, true
	}
	return "", false
}

// text reads a line of at most 256 bytes without control characters: it may
// end up in a log line or a terminal.
func (d *decoder) text(n *yaml.Node, what string, into *string) {
	const most = 256
	s, ok := d.scalar(n, what, "text")
	switch {
	case !ok:
	case len(s) > most:
		d.fault(n, "", "%s is longer than %d bytes", what, most)
	case strings.ContainsFunc(s, label.Control):
		d.fault(n, "", "%s holds control characters", what)
	default:
		*into = s
	}
}

// label reads a name that may become a label in logs and metrics.
func (d *decoder) label(n *yaml.Node, what string) (string, bool) {
	s, ok := d.scalar(n, what, "a name")
	if ok && !isLabel(s) {
		d.fault(n, "", "%s %s is no name: want 1 to 64 letters, digits, '.', '_' or '-'", what, quote(s))
		return "", false
	}
	return s, ok
}

// isLabel holds the form of all names: 1 to 64 bytes, safe in a metric's
// label, a path and a shell.
func isLabel(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '.' && r != '_' && r != '-'
	})
}

// flag reads true or false. yes and on are not accepted: YAML 1.1 takes them
// for truth values and YAML 1.2 for text, so that tools disagree.
func (d *decoder) flag(n *yaml.Node, what string, into *bool) {
	s, ok := d.scalar(n, what, "true or false")
	switch {
	case !ok:
	case s == "true" || s == "false":
		*into = s == "true"
	default:
		d.fault(n, "", "%s is %s: want true or false", what, quote(s))
	}
}

// count reads a whole number. Zero is a fault; instead says what to write
// where 0 was meant.
func (d *decoder) count(n *yaml.Node, what, instead string, into *int) {
	s, ok := d.scalar(n, what, "a whole number")
	if !ok {
		return
	}
	v, err := strconv.Atoi(s)
	switch {
	case err != nil:
		d.fault(n, "", "%s is %s: want a whole number", what, quote(s))
	case v == 0:
		d.fault(n, "", "%s is 0: %s", what, instead)
	default:
		*into = v
	}
}

// duration reads a duration such as "500ms" or "1m30s". Zero is a fault,
// because it would mean the default, and so is a negative one.
func (d *decoder) duration(n *yaml.Node, what string, into *time.Duration) {
	d.durationOr(n, what, "", into)
}

// durationOr is duration for a field that takes words as well, which or names in
// faults: "off, or ".
func (d *decoder) durationOr(n *yaml.Node, what, or string, into *time.Duration) {
	switch v, ok := d.span(n, what, or); {
	case !ok:
	case v == 0:
		d.fault(n, "", "%s is 0: leave it out for the default", what)
	case v < 0:
		d.fault(n, "", "%s is negative", what)
	default:
		*into = v
	}
}

const wantDuration = "a duration such as 500ms, 1s or 2m"

// span reads a duration that may be 0 or negative. Its callers know what that means.
func (d *decoder) span(n *yaml.Node, what, or string) (time.Duration, bool) {
	s, ok := d.scalar(n, what, or+wantDuration)
	if !ok {
		return 0, false
	}
	v, err := ParseDuration(s)
	if err != nil {
		d.fault(n, "", "%s is %s: want %s%s", what, quote(s), or, wantDuration)
	}
	return v, err == nil
}

// number reads a decimal number other than 0.
func (d *decoder) number(n *yaml.Node, what string, into *float64) {
	s, ok := d.scalar(n, what, "a number")
	if !ok {
		return
	}
	if v, ok := decimal(s); ok && v != 0 {
		*into = v
		return
	}
	d.fault(n, "", "%s is %s: want a number such as 1.2", what, quote(s))
}

// ratio reads a share other than 0 as "20%" or 0.2. A bare 20 is a fault and not 2000 %.
func (d *decoder) ratio(n *yaml.Node, what string, into *float64) {
	switch v, ok := d.share(n, what, ""); {
	case !ok:
	case v == 0:
		d.fault(n, "", "%s is 0: leave it out for the default, or write disabled: true", what)
	default:
		*into = v
	}
}

// share reads a share that may be 0, for a field that takes words as well, which or
// names in faults: "on, off, or ".
func (d *decoder) share(n *yaml.Node, what, or string) (float64, bool) {
	want := or + "a share such as 20% or 0.2"
	s, ok := d.scalar(n, what, want)
	if !ok {
		return 0, false
	}
	// A share over 1 without a percent sign is most likely a forgotten one.
	part, percent := strings.CutSuffix(s, "%")
	v, ok := decimal(strings.TrimSpace(part))
	if percent {
		v /= 100
	}
	switch {
	case !ok:
		d.fault(n, "", "%s is %s: want %s", what, quote(s), want)
	case v < 0 || v > 1:
		d.fault(n, "", "%s is %s, which is no share of the whole: write 20%% or 0.2", what, quote(s))
	default:
		return v, true
	}
	return 0, false
}

// decimal refuses NaN and infinities, which strconv accepts and comparisons
// do not survive.
func decimal(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// choice reads one of a few words and returns its index. Callers rely on the
// order in which they pass the words.
func (d *decoder) choice(n *yaml.Node, what string, words ...string) (int, bool) {
	want := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	s, ok := d.scalar(n, what, want)
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
	d.fault(n, "", "%s is %s%s", what, quote(s), hint)
	return 0, false
}
