package explain

import (
	"errors"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// overlay lays the policy fields in data, in the form of a policy file, over
// base. Its error is one line, without positions: data is part of something
// larger. Other errors than faults of the policy pass through unchanged.
func overlay(data []byte, base forbear.Policy) (forbear.Policy, error) {
	p, err := policyfile.ParsePolicy("policy", data, base)
	e, ok := errors.AsType[*policyfile.Error](err)
	if !ok {
		return p, err
	}
	var lines []string
	for _, f := range e.Faults {
		line := f.Message
		if !strings.HasPrefix(line, "policy") {
			line = "policy: " + line
		}
		if f.Rule != "" {
			line += " (" + f.Rule + ")"
		}
		lines = append(lines, line)
	}
	return p, errors.New(strings.Join(lines, "; "))
}

// loadPolicy reads a policy file and returns the policy of one of its
// dependencies. The file is held to the standard: what serve would refuse, explain
// does not explain. Addresses that come from the environment are not looked up: an
// explanation calls nothing, and is asked for on machines that do not run the service.
// A dependency that the file lacks is an error. The defaults would
// otherwise explain a policy that no service runs.
func loadPolicy(path, dependency string) (p forbear.Policy, service string, err error) {
	f, err := policyfile.Preview(path)
	if err != nil {
		return p, "", err
	}
	d, err := f.Choose(dependency)
	if err != nil {
		return p, "", err
	}
	return d.Policy, f.Service, nil
}
