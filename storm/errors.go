package storm

import (
	"errors"
	"fmt"
)

// FieldError is one fault of a scenario, with the path of the field that has it:
// "services[0].capacity".
type FieldError struct {
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// Error returns the path and what is wrong with it.
func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// at returns a fault of the field at path.
func at(path, format string, args ...any) error {
	return &FieldError{path, fmt.Sprintf(format, args...)}
}

// within prefixes the path of err with outer, which is all of the path where err is no
// [*FieldError].
func within(outer string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{outer + "." + f.Path, f.Detail}
	}
	return &FieldError{outer, err.Error()}
}

// FieldErrors lists the faults in an error of [Scenario.Validate], or of a function
// that validates. An error of another kind comes as one fault without a path, so that
// nothing is lost on the way to a user.
func FieldErrors(err error) []*FieldError {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*FieldError
		for _, e := range many.Unwrap() {
			all = append(all, FieldErrors(e)...)
		}
		return all
	}
	f, ok := errors.AsType[*FieldError](err)
	if !ok {
		f = &FieldError{"", err.Error()}
	}
	return []*FieldError{f}
}
