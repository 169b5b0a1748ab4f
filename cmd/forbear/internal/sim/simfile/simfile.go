// Package simfile reads simulator scenarios from YAML (of which JSON is a part),
// with the position of every mistake. It reads into storm's own types by their
// JSON names, so that a field that storm gains needs nothing here. Package storm
// itself cannot: it has no dependencies, and the YAML parser is one.
package simfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// The bounds of a scenario file, in bytes, levels, entries of a list and
// reported mistakes. They keep it from taking more memory or time than a
// scenario is worth.
const (
	maxSize   = 1 << 20
	maxDepth  = 32
	maxList   = 1000
	maxFaults = 50
)

// Fault is one mistake, with its place. Lines and columns count from 1.
type Fault struct {
	File         string
	Line, Column int
	Detail       string
}

// Error returns "file:line:column: detail".
func (f *Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Detail)
}

// Load reads the file. Its error joins a [*Fault] for every mistake. The
// size is checked before reading: a scenario named by mistake may be a log
// of gigabytes.
func Load(path string) (storm.Scenario, error) {
	// A file that cannot be asked for its size cannot be read either.
	if info, err := os.Stat(path); err == nil && info.Size() > maxSize {
		return storm.Scenario{}, fmt.Errorf("%s: %d bytes: at most %d", path, info.Size(), maxSize)
	}
	data, err := os.ReadFile(path)
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
	if len(data) > maxSize {
		return s, fmt.Errorf("%s: %d bytes: at most %d", name, len(data), maxSize)
	}
	d := &decoder{file: name, nodes: map[string]*yaml.Node{}}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return s, &Fault{name, 1, 1, "the file is empty"}
	}
	root := doc.Content[0]
	d.decode(root, "", reflect.ValueOf(&s).Elem())
	if len(d.faults) == 0 {
		d.policies(&s)
	}
	if len(d.faults) == 0 {
		// storm names fields by their path, which leads back to the node
		// and so to its line.
		for _, f := range storm.FieldErrors(s.Validate()) {
			d.fault(d.nearestNode(f.Path, root), "%s", f.Error())
		}
	}
	return s, errors.Join(d.faults...)
}

// policies resolves the policies that clients take from policy files: those
// of the fleets, and those of services that call others.
func (d *decoder) policies(s *storm.Scenario) {
	for i := range s.Fleets {
		d.policy(&s.Fleets[i].Client, fmt.Sprintf("fleets[%d].client.policy", i))
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			d.policy(&s.Services[i].Calls[j].Client, fmt.Sprintf("services[%d].calls[%d].client.policy", i, j))
		}
	}
}

// policy replaces a client's reference by the policy that it names. The
// fault is placed at the reference, not in the other file.
func (d *decoder) policy(c *storm.Client, path string) {
	if c.PolicyRef == "" {
		return
	}
	p, err := Policy(filepath.Dir(d.file), c.PolicyRef)
	if err != nil {
		d.fault(d.nodes[path], "%s: %v", path, err)
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
	f, err := policyfile.Load(name)
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
