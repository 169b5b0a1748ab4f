package simfile

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/storm"
)

// unmeant reports what is written and would be read as something else: a rate of 0 as the
// default of 1, 30 % of a fleet's rate as 0.3 calls a second, a budget that a baseline
// replaces.
func (r *reader) unmeant(s *storm.Scenario) {
	r.defaulted("", reflect.ValueOf(*s), reflect.ValueOf(s.WithDefaults()))
	for path, n := range r.places {
		switch {
		case strings.HasSuffix(n.Value, "%") && n.Kind == yaml.ScalarNode && !share.MatchString(path) && !text.MatchString(path):
			r.Fault(n, "%s: %s is a share, and this is none: write a plain number", path, n.Value)
		case strings.HasSuffix(path, ".client.policy") && n.Value == "":
			r.Fault(n, "%s is empty: want FILE or FILE#DEPENDENCY", path)
		case strings.HasSuffix(path, ".client.budget") && (r.on(path, "baseline.no_budget") || r.on(path, "baseline.bucket")):
			r.Fault(n, "%s: baseline takes the place of the budget: remove one of them", path)
		case strings.HasSuffix(path, ".baseline.bucket") && r.places[path+".size"] == nil:
			r.Fault(n, "%s: there is no bucket without size", path)
		case noFault.MatchString(path) && zero.MatchString(n.Value):
			r.Fault(n, "%s: 0 stands for all: leave it out, or write how many", path)
		}
		// A client's defaults are those of its policy.
		if m := policyWord.FindStringSubmatch(path); m != nil && zero.MatchString(n.Value) {
			r.Fault(n, "%s: %s stands for the default: leave it out%s", path, n.Value, instead[m[1]])
		}
	}
}

// on reports whether the client of path has that field, and not as false.
func (r *reader) on(path, field string) bool {
	n := r.places[strings.TrimSuffix(path, "budget")+field]
	return n != nil && n.Value != "false"
}

var (
	share      = regexp.MustCompile(`^faults\[\d+\]\.(rate|share|factor)$|\.ratio$|\.q$`)
	text       = regexp.MustCompile(`(^|\.)(name|description)$`)
	noFault    = regexp.MustCompile(`^faults\[\d+\]\.replicas$`)
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
