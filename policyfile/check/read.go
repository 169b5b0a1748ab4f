package check

import (
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// Read reads a file for judging: a policy file, or the configuration of
// other software when it looks like one. The faults of a policy file are
// returned as a [*policyfile.Error].
func Read(name string, data []byte) (Source, error) { return ReadAs("", name, data) }

// ReadAs reads a file of the given format: "forbear", or one of
// [foreign.Formats]; "" finds out by its name and its contents.
func ReadAs(format, name string, data []byte) (Source, error) {
	if format == "" {
		format = foreign.Detect(name, data)
	}
	// What no adapter recognises is read as a policy file, whose reader
	// names what is wrong.
	if format == "" || format == "forbear" {
		f, refused, err := policyfile.Inspect(name, data)
		return Source{File: f, Refused: refused}, err
	}
	f, refused, err := foreign.Read(format, name, data)
	return Source{File: f, Refused: refused}, err
}
