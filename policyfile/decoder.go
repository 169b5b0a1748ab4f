package policyfile

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/internal/former"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// What is wrong with a policy file, and where, is said in the terms of the strict reader.
type (
	Position = strict.Position
	Fault    = strict.Fault
	Error    = strict.Error
)

type fields = strict.Fields

// decoder reads one policy file.
type decoder struct {
	strict.Reader
	// now decides whether a waiver has expired. It is read once, so that
	// all waivers of a file are judged by the same moment.
	now time.Time
	// deprecated are the keys that were read under a former name.
	deprecated []*Fault
	// inspect is set for those who judge a file and do not run by it:
	// waivers are not applied.
	inspect bool
	// elsewhere is set for those who are not where the service runs: values
	// from the environment are not looked up.
	elsewhere bool
	seen      map[string]Position // the dependencies read so far
}

func newDecoder(name string, now time.Time) *decoder {
	d := &decoder{now: now}
	d.Name, d.Former = name, d.former
	return d
}

// refuse records that a value breaks a rule of the standard. Such a fault
// names its dependency and field, so that a waiver can lift it and a gate
// can group it.
func (d *decoder) refuse(at Position, rule, owner, field, format string, args ...any) {
	f := d.FaultAt(at, format, args...)
	f.Rule, f.Dependency, f.Field = rule, owner, field
}

// former notes a key of a mapping under its former name, and returns the present one.
// Beside that it is a fault: the two may differ.
func (d *decoder) former(n, key *yaml.Node, what string, known fields) (string, bool) {
	by, renamed := former.Keys[key.Value]
	if !renamed || known[by.Instead] == nil {
		return "", false
	}
	for i, other := range strict.Resolve(n).Content {
		if i%2 == 0 && strict.Resolve(other).Value == by.Instead {
			d.Fault(key, "%s and %s are the same key of %s: keep one", strict.Quote(key.Value), strict.Quote(by.Instead), what)
		}
	}
	d.deprecated = append(d.deprecated, &Fault{
		Position: d.At(key),
		Message:  fmt.Sprintf("key %s of %s is now called %s: %s will refuse the old name", strict.Quote(key.Value), what, strict.Quote(by.Instead), by.Until),
	})
	return by.Instead, true
}
