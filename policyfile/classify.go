package policyfile

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
)

// maxClasses bounds the overrides of one policy: each of them is kept and
// compared on every failure.
const maxClasses = 200

// classify reads overrides of the class of single error types: "http_404",
// "http_5xx", "grpc_NOT_FOUND", "connection_reset".
func (r *policyReader) classify(n *yaml.Node) {
	for key, value := range r.entries(n, "classify") {
		if !r.errorType(key) {
			continue
		}
		// Reported once, at the first entry too many.
		if len(r.policy.Classify) >= maxClasses {
			r.fault(key, "", "classify has more than %d entries", maxClasses)
			return
		}
		what := "classify." + key.Value
		r.sets(what, func(v *yaml.Node) {
			// People write "retry" for what the library calls transient.
			words := []string{"transient", "timeout", "throttled", "dns", "unauthorized", "terminal", "retry"}
			i, ok := r.choice(v, what, words...)
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

// grpcCodes are the names of all codes except OK, as in the gRPC
// specification. They catch a misspelled label.
var grpcCodes = []string{
	"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// errorType reports whether key can be the label of a failure. A label that no
// failure ever carries would be an override that silently does nothing.
func (d *decoder) errorType(key *yaml.Node) bool {
	label := key.Value
	if !isLabel(label) {
		d.fault(key, "", "classify: %s is no error type", quote(label))
		return false
	}
	if status, ok := strings.CutPrefix(label, "http_"); ok && !isStatus(status) {
		d.fault(key, "", "classify: %s is no error type: want http_404 or http_5xx", quote(label))
		return false
	}
	if status, err := strconv.Atoi(label); err == nil {
		d.fault(key, "", "classify: %s is no error type: did you mean http_%d?", quote(label), status)
		return false
	}
	code, ok := strings.CutPrefix(label, "grpc_")
	if !ok {
		return true
	}
	name, known := nearest.Of(code, grpcCodes)
	switch {
	case known && name == code:
		return true
	case known:
		d.fault(key, "", "classify: %s is no error type: did you mean grpc_%s?", quote(label), name)
	default:
		d.fault(key, "", "classify: %s is no error type: want a code such as grpc_NOT_FOUND", quote(label))
	}
	return false
}

// isStatus accepts a status such as "404" and a class such as "5xx".
func isStatus(s string) bool {
	if len(s) != 3 || s[0] < '1' || s[0] > '5' {
		return false
	}
	if s[1:] == "xx" {
		return true
	}
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}
