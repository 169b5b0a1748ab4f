package policyfile

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

// label reads a name that may become a label in logs and metrics.
func (d *decoder) label(n *yaml.Node, what string) (string, bool) {
	s, ok := d.Scalar(n, what, "a name")
	if ok && !isLabel(s) {
		d.Fault(n, "%s %s is not a name: want 1 to 64 letters, digits, '.', '_' or '-'", what, strict.Quote(s))
		return "", false
	}
	return s, ok
}

// isLabel holds the form of all names: 1 to 64 bytes, safe in a metric's
// label, a path and a shell.
func isLabel(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, notInName)
}

// notInName reports whether c stands in no name, and in no name of a host.
func notInName(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !letter && c != '.' && c != '-' && c != '_'
}

// count reads a whole number. Zero is a fault; instead says what to write
// where 0 was meant.
func (d *decoder) count(n *yaml.Node, what, instead string, into *int) {
	s, ok := d.Scalar(n, what, "a whole number")
	if !ok {
		return
	}
	v, err := strconv.Atoi(s)
	switch {
	case err != nil:
		d.Fault(n, "%s is %s: want a whole number", what, strict.Quote(s))
	case v == 0:
		d.Fault(n, "%s is 0: %s", what, instead)
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
		d.Fault(n, "%s is 0: leave it out for the default", what)
	case v < 0:
		d.Fault(n, "%s is negative", what)
	default:
		*into = v
	}
}

const wantDuration = "a duration such as 500ms, 1s or 2m"

// span reads a duration that may be 0 or negative. Its callers know what that means.
func (d *decoder) span(n *yaml.Node, what, or string) (time.Duration, bool) {
	s, ok := d.Scalar(n, what, or+wantDuration)
	if !ok {
		return 0, false
	}
	v, err := ParseDuration(s)
	if err != nil {
		d.Fault(n, "%s is %s: want %s%s", what, strict.Quote(s), or, wantDuration)
	}
	return v, err == nil
}

// number reads a decimal number other than 0.
func (d *decoder) number(n *yaml.Node, what string, into *float64) {
	s, ok := d.Scalar(n, what, "a number")
	if !ok {
		return
	}
	if v, ok := decimal(s); ok && v != 0 {
		*into = v
		return
	}
	d.Fault(n, "%s is %s: want a number such as 1.2", what, strict.Quote(s))
}

// ratio reads a share other than 0 as "20%" or 0.2. A bare 20 is a fault and not 2000 %.
func (d *decoder) ratio(n *yaml.Node, what string, into *float64) {
	switch v, ok := d.share(n, what, ""); {
	case !ok:
	case v == 0:
		d.Fault(n, "%s is 0: leave it out for the default, or write disabled: true", what)
	default:
		*into = v
	}
}

// share reads a share that may be 0, for a field that takes words as well, which or
// names in faults: "on, off, or ".
func (d *decoder) share(n *yaml.Node, what, or string) (float64, bool) {
	want := or + "a share such as 20% or 0.2"
	s, ok := d.Scalar(n, what, want)
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
		d.Fault(n, "%s is %s: want %s", what, strict.Quote(s), want)
	case v < 0 || v > 1:
		d.Fault(n, "%s is %s, which is not a share: write 20%% or 0.2", what, strict.Quote(s))
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

// ParseDuration reads a duration as policy files have it: as [time.ParseDuration],
// and whole days, alone, such as 8d. A day is 24 hours here.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		const most = 100_000 // far from an overflow
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= most {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

// FormatDuration writes a duration as people do: 2m and not 2m0s.
// [ParseDuration] reads it back.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
