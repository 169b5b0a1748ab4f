package simfile

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/storm"
)

// zeros reports each 0 of the file that would be read as a default: who writes a rate
// of 0 does not mean 1.
func (r *reader) zeros(s *storm.Scenario) {
	r.defaulted("", reflect.ValueOf(*s), reflect.ValueOf(s.WithDefaults()))
	// A client's defaults are those of its policy.
	for path, n := range r.places {
		if m := policyWord.FindStringSubmatch(path); m != nil && zero.MatchString(n.Value) {
			r.Fault(n, "%s: %s stands for the default: leave it out%s", path, n.Value, instead[m[1]])
		}
	}
}

var (
	zero       = regexp.MustCompile(`^0+(\.0+)?(%|[a-zµ]+)?$`)
	policyWord = regexp.MustCompile(`\.client\.(?:budget\.)?(timeout|total|base|cap|ratio|window|min_retries)$`)
	instead    = map[string]string{
		"base":        ", or write baseline: {wait: none}",
		"ratio":       ", or write baseline: {no_budget: true}",
		"min_retries": ", or write strict: true",
	}
)

// defaulted compares a value as it was read with the same after the defaults: what was
// written and has changed was a 0.
func (r *reader) defaulted(path string, read, full reflect.Value) {
	switch read.Kind() {
	case reflect.Struct:
		for f, v := range read.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "-" {
				r.defaulted(strings.TrimPrefix(path+"."+name, "."), v, full.FieldByIndex(f.Index))
			}
		}
	case reflect.Slice:
		for i := range min(read.Len(), full.Len()) {
			r.defaulted(fmt.Sprintf("%s[%d]", path, i), read.Index(i), full.Index(i))
		}
	default:
		n := r.places[path]
		if n != nil && read.IsZero() && !full.IsZero() && !slices.Contains([]string{"", "null", "~"}, n.Value) {
			r.Fault(n, "%s: %s stands for the default, %v: leave it out, or write what is meant", path, n.Value, full)
		}
	}
}
