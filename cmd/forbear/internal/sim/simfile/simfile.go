// Package simfile reads simulator scenarios from YAML (of which JSON is a part),
// with the position of every mistake. It reads into storm's own types by their
// JSON names, so that a field that storm gains needs nothing here. Package storm
// itself cannot: it has no dependencies, and the YAML parser is one.
package simfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/strict"
	"github.com/forbear-go/forbear/storm"
)

// maxSize bounds a scenario file, in bytes: one that is named by mistake may be a log of
// gigabytes.
const maxSize = 1 << 20

// Load reads the file. The faults come all at once, as a [*strict.Error].
func Load(path string) (storm.Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return storm.Scenario{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return storm.Scenario{}, err
	}
	return Parse(path, data)
}

// Parse reads a scenario from data. name is used in errors, and policy files
// that it refers to are looked up next to it.
//
// Mistakes of form are reported together, and only a file without any is
// judged by storm: a misspelt field would otherwise be reported a second
// time as missing.
func Parse(name string, data []byte) (storm.Scenario, error) {
	var s storm.Scenario
	r := &reader{Reader: strict.Reader{Name: name}}
	root := r.Document(data, maxSize)
	if root == nil {
		return s, r.Err()
	}
	r.places = r.Struct(root, &s)
	if r.Count() == 0 {
		r.unmeant(&s)
		r.policies(&s)
	}
	if r.Count() == 0 {
		// storm names fields by their path, which leads back to the node
		// and so to its line.
		for _, f := range storm.FieldErrors(s.Validate()) {
			r.Fault(r.places.Nearest(f.Path), "%s", f.Error())
		}
	}
	return s, r.Err()
}

// reader reads one scenario file.
type reader struct {
	strict.Reader
	places strict.Places
}

// policies resolves the policies that clients take from policy files: those
// of the fleets, and those of services that call others.
func (r *reader) policies(s *storm.Scenario) {
	for i := range s.Fleets {
		r.policy(&s.Fleets[i].Client, fmt.Sprintf("fleets[%d].client.policy", i))
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			r.policy(&s.Services[i].Calls[j].Client, fmt.Sprintf("services[%d].calls[%d].client.policy", i, j))
		}
	}
}

// policy replaces a client's reference by the policy that it names. The
// fault is placed at the reference, not in the other file.
func (r *reader) policy(c *storm.Client, path string) {
	if c.PolicyRef == "" {
		return
	}
	p, err := Policy(filepath.Dir(r.Name), c.PolicyRef)
	if err != nil {
		r.Fault(r.places[path], "%s: %v", path, err)
		return
	}
	c.Policy = &p
}

// Policy returns the policy that ref names: FILE#DEPENDENCY, or FILE alone
// when it has only one dependency. FILE is relative to dir. The file has to
// be free of faults, since a simulation of another policy would mislead.
func Policy(dir, ref string) (forbear.Policy, error) {
	name, dependency, _ := strings.Cut(ref, "#")
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	f, err := policyfile.Preview(name)
	if err != nil {
		return forbear.Policy{}, err
	}
	// Waivers are the gate's affair: a simulation shows what the policy does.
	d, err := f.Choose(dependency)
	if err != nil {
		return forbear.Policy{}, err
	}
	return d.Policy, nil
}

// Policies reads a policy file and returns the policy of each dependency, consumer and
// webhook, by its name. Each fault is a [*storm.FieldError] whose path is its place:
// "line 3, column 5". It reads no environment variable and no other file.
func Policies(text []byte) (map[string]forbear.Policy, error) {
	f, err := policyfile.ParsePreview("policy file", text)
	if faults, ok := errors.AsType[*strict.Error](err); ok {
		var all []error
		for _, x := range faults.Faults {
			message := strings.TrimPrefix(x.Error(), x.Position.String()+": ")
			all = append(all, &storm.FieldError{Path: fmt.Sprintf("line %d, column %d", x.Line, x.Column), Detail: message})
		}
		return nil, errors.Join(all...)
	}
	if err != nil {
		return nil, err
	}
	policies := map[string]forbear.Policy{}
	for _, d := range f.All() {
		policies[d.Name] = d.Policy
	}
	return policies, nil
}
