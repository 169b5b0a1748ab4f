package policyfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// maxClasses bounds the overrides of one policy: each of them is kept and
// compared on every failure.
const maxClasses = 200

// classify reads overrides of the class of single error types: "http_404",
// "http_5xx", "grpc_NOT_FOUND", "connection_reset".
func (r *policyReader) classify(n *yaml.Node) {
	for key, value := range r.Entries(n, "classify") {
		if !r.errorType(key) {
			continue
		}
		// Reported once, at the first entry too many.
		if len(r.policy.Classify) >= maxClasses {
			r.Fault(key, "classify has too many entries: want at most %d", maxClasses)
			return
		}
		what := "classify." + key.Value
		r.sets(what, func(v *yaml.Node) {
			// People write "retry" for what the library calls transient.
			words := []string{"transient", "timeout", "throttled", "dns", "unauthorized", "terminal", "retry"}
			i, ok := r.Choice(v, what, words...)
			if !ok {
				return
			}
			class := forbear.ClassTransient
			if words[i] != "retry" {
				_ = class.UnmarshalText([]byte(words[i])) // each word is a class
			}
			if r.policy.Classify == nil {
				r.policy.Classify = map[string]forbear.Class{}
			}
			r.policy.Classify[key.Value] = class
		})(value)
	}
}

// errorType reports whether key can be the label of a failure. A label that no
// failure ever carries would be an override that silently does nothing.
func (d *decoder) errorType(key *yaml.Node) bool {
	label := key.Value
	refuse := func(hint string) bool {
		d.Fault(key, "classify: %s is not an error type%s", strict.Quote(label), hint)
		return false
	}
	if !isLabel(label) {
		return refuse("")
	}
	if code, ok := strings.CutPrefix(label, "http_"); ok && !status.MatchString(code) {
		return refuse(": want http_404 or http_5xx")
	}
	if code, err := strconv.Atoi(label); err == nil {
		return refuse(fmt.Sprintf(": did you mean http_%d?", code))
	}
	code, ok := strings.CutPrefix(label, "grpc_")
	if !ok {
		return true
	}
	// OK is no failure, and so no label.
	switch name, known := nearest.Of(code, grpccode.Names[1:]); {
	case known && name == code:
		return true
	case known:
		return refuse(": did you mean grpc_" + name + "?")
	default:
		return refuse(": want a code such as grpc_NOT_FOUND")
	}
}

// status matches a status such as "404" and a class such as "5xx".
var status = regexp.MustCompile(`^[1-5](?:xx|\d\d)$`)
